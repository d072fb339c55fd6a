# SPDX-License-Identifier: Apache-2.0
"""`roundabout profile gpu`: profiles from a model's computing as measured on a GPU."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from analysis.records import profile_maker
from roundabout.cli.profile.stored_profile import ResultJson, Save, new_profile_path
from roundabout.core.errors import UsageError
from roundabout.terminal.screen import Screen

if TYPE_CHECKING:
    from analysis.records.gpu_record import GpuRecord

PAYLOAD_GBPS = 43.0
"""Payload rate of a link of 50 Gbit/s in the topologies of the papers' experiments (experiments/topologies)."""
POD_PAYLOAD_GBPS = 391.0
"""Payload rate of a link of 400 Gbit/s in the fabrics of `roundabout new --from`."""
UNNAMED = "gpu"


def gpu(  # noqa: PLR0913, PLR0917 - one a command-line option
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Record of a model's computing on a GPU.")],
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MODEL [FIELD=VALUE...]]",
            help="A model, and fields such as batch=512 that choose one of its measurements; or a parallel job, and "
            "fields to change in it, such as data=8. Default: show what the record holds.",
        ),
    ] = None,
    workers: Annotated[int, typer.Option(min=2, max=10_000, help="For a model: number of workers in the ring.")] = 2,
    payload_gbps: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            max=1e6,
            metavar="GBPS",
            help=f"Payload rate of a worker's link. Default: {PAYLOAD_GBPS:g}, and {POD_PAYLOAD_GBPS:g} for a "
            "parallel job.",
        ),
    ] = None,
    save: Save = None,
    as_json: ResultJson = False,
) -> None:
    """Make a profile from computing measured on a GPU, and computed communication (docs/reference/gpu-computing.md)."""
    from analysis.records import gpu_record, parallel_profile  # noqa: PLC0415 - `--help` need not wait for it
    from roundabout.spec.training.parallel_job import read_parallel_jobs  # noqa: PLC0415

    target = new_profile_path(save) if save else None
    console = Screen(stderr=as_json)
    record = gpu_record.read_gpu_record(path)
    name = target.stem if target else UNNAMED
    if not words:
        if target:
            raise UsageError(f"--save: found no model, expected one after {path}")
        console.print(_record_table(record), highlight=False)
        console.print(*(f"- {each}" for each in record.failures), sep="\n", highlight=False)
        if as_json:
            print(json.dumps([each.model_dump(mode="json") for each in record.measurements], indent=2))
        return
    if words[0] in read_parallel_jobs():
        payload_gbps = payload_gbps or POD_PAYLOAD_GBPS
        job = parallel_profile.job_of_words(words)
        measured = parallel_profile.measurement_of(job, record)
        profile = parallel_profile.profile_of_parallel_job(job, measured, name, payload_gbps)
        workers = profile.workers or 0
        sentences = list(parallel_profile.CAVEATS)
    else:
        payload_gbps = payload_gbps or PAYLOAD_GBPS
        measured = gpu_record.choose_measurement(record, words)
        profile = gpu_record.profile_of_measurement(measured, name, workers, payload_gbps)
        sentences = list(gpu_record.caveats(measured))
    title = f"{measured.model} on {measured.gpu_name}, {workers} workers at {payload_gbps:g} Gbit/s"
    profile_maker.report_profile(profile, title, sentences, target, console)
    if as_json:
        result = profile_maker.profile_json(profile, sentences, target)
        print(json.dumps({"measurement": measured.model_dump(mode="json"), **result}, indent=2))


def _record_table(record: "GpuRecord") -> Table:
    """Return a table of a record's measurements, a row each."""
    names = ", ".join(dict.fromkeys(each.gpu_name for each in record.measurements))
    table = profile_maker.untitled_table(f"Measured on {names or 'nothing'}; medians in ms")
    for heading in ("model", "batch", "precision", "input, share"):
        table.add_column(heading)
    for heading in ("forward", "backward"):
        table.add_column(heading, justify="right")
    for each in record.measurements:
        parts = "\n".join(f"{name}={value}" for name, value in (*each.input.items(), *each.share.items()))
        medians = f"{each.forward_ms.median:.2f}", f"{each.backward_ms.median:.2f}"
        table.add_row(each.model, str(each.batch), each.precision, parts, *medians)
    return table
