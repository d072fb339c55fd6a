# SPDX-License-Identifier: Apache-2.0
"""`roundabout profile records`: a profile from profiler records of a cluster's job."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from analysis.records import profile_maker
from roundabout.cli.profile.stored_profile import ResultJson, Save, new_profile_path
from roundabout.core.errors import UsageError
from roundabout.spec import EXPERIMENTS
from roundabout.store.manifest import NAME as MANIFEST
from roundabout.terminal.screen import Screen

SAMPLE = EXPERIMENTS / "records" / "ddp-lab-nccl"


def records(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE...]",
            help="One file for each rank, or a folder, of NCCL Inspector, PyTorch Kineto, Chakra or nccl-tests.",
        ),
    ] = None,
    sample: Annotated[
        bool, typer.Option("--sample", help="Use sample records: two ranks over NCCL, by PyTorch Kineto.")
    ] = False,
    save: Save = None,
    as_json: ResultJson = False,
) -> None:
    """Determine a job's period, phases and demands from profiler records (docs/how-to/records.md)."""
    target = new_profile_path(save) if save else None
    paths = _record_paths(files or (), sample=sample)
    profile_maker.report_records(paths, target, Screen(stderr=as_json), as_json=as_json)


def _record_paths(files: Sequence[str], *, sample: bool) -> list[Path]:
    """Return the paths of the records. Raises UsageError if there are none, or if a path does not exist."""
    if sample and files:
        raise UsageError("profile records: found --sample beside files, expected one of them")
    if not files and not sample:
        raise UsageError("profile records: found no files, expected FILE..., or --sample")
    if "" in files:
        raise UsageError("profile records: found an empty name, expected files of records")
    paths = [SAMPLE] if sample else [Path(each) for each in files]
    for path in paths:
        if not path.is_file() and not path.is_dir():
            raise UsageError(f"profile records: found no file {path}, expected files of records")
        if (path / MANIFEST).exists():
            raise UsageError(
                f"profile records: found the run {path}, expected files of records",
                f"for a run: roundabout profile measure JOB --from {path}",
            )
    return paths
