# SPDX-License-Identifier: Apache-2.0
"""`roundabout profile chakra`: a profile from Chakra's execution traces without start times."""

import json
from pathlib import Path
from typing import Annotated

import typer

from analysis.records import profile_maker
from roundabout.cli.profile.gpu import POD_PAYLOAD_GBPS
from roundabout.cli.profile.stored_profile import ResultJson, Save, new_profile_path
from roundabout.terminal.screen import Screen

UNNAMED = "chakra"


def chakra(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="One trace for each rank, <prefix>.<rank>.et, or a folder of them; and ASTRA-sim's file of groups.",
        ),
    ],
    payload_gbps: Annotated[
        float, typer.Option(min=0.001, max=1e6, metavar="GBPS", help="Payload rate of a worker's link.")
    ] = POD_PAYLOAD_GBPS,
    tflops: Annotated[
        float | None,
        typer.Option(min=1e-6, max=1e9, help="Rate at which a worker computes nodes that have no duration, TFLOP/s."),
    ] = None,
    save: Save = None,
    as_json: ResultJson = False,
) -> None:
    """Make a profile from Chakra's execution traces, by their dependencies (docs/how-to/execution-traces.md)."""
    from analysis.records.execution_profile import make_execution_profile  # noqa: PLC0415 - `--help` need not wait
    from analysis.records.execution_schedule import Rates  # noqa: PLC0415

    target = new_profile_path(save) if save else None
    paths = [file for each in files for file in (profile_maker.files_in(each) if each.is_dir() else [each])]
    name = target.stem if target else UNNAMED
    found = make_execution_profile(paths, name, Rates(payload_gbps, tflops))
    title = f"Chakra's execution traces at {payload_gbps:g} Gbit/s"
    profile_maker.report_profile(found.profile, title, found.caveats, target, Screen(stderr=as_json))
    if as_json:
        print(json.dumps(profile_maker.profile_json(found.profile, found.caveats, target), indent=2))
