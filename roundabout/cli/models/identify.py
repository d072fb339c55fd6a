# SPDX-License-Identifier: Apache-2.0
"""`roundabout identify`: find which readings of a transport's unknown parameters fit printed measurements."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roundabout.cli.models.progress import show_part
from roundabout.cli.options import Jobs, Json
from roundabout.terminal.screen import Screen

if TYPE_CHECKING:
    from analysis.calibration.identification import Observation
    from roundabout.spec.transports.identification import Identification


def _names(incomplete: str) -> list[str]:
    from roundabout.spec.transports.identification import identification_names  # noqa: PLC0415

    return [name for name in identification_names() if name.startswith(incomplete)]


WhichIdentification = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="A file of experiments/identification, like hotnets/fig-1.", autocompletion=_names
    ),
]


def command(  # noqa: PLR0913, PLR0917 - one a command-line option
    name: WhichIdentification,
    points: Annotated[
        int | None, typer.Option(min=0, help="Number of sampled candidates. Default: the file's.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the samples.")] = 1,
    jobs: Jobs = None,
    write: Annotated[
        bool, typer.Option("--write", help="Store what fits, and the representative as a set of the transport.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Play candidates for unknown parameters packet by packet, and show which fit the measurements that a paper prints.

    The representative is the fitting candidate that departs least from the vendor's values.
    """
    from analysis.calibration import identification as found  # noqa: PLC0415 - `--help` need not wait for these
    from analysis.calibration.candidates import propose_candidates  # noqa: PLC0415
    from analysis.calibration.identified_set import set_text  # noqa: PLC0415
    from roundabout.spec.transports.identification import FOLDER, read_identification  # noqa: PLC0415
    from roundabout.spec.transports.registry import find_declaration  # noqa: PLC0415
    from roundabout.spec.transports.sets import set_path  # noqa: PLC0415
    from roundabout.store.files import write_text  # noqa: PLC0415

    document = read_identification(name)
    candidates = propose_candidates(document, document.points if points is None else points, seed)
    with show_part(f"playing {len(candidates)} candidates") as progress:
        observations = found.observe_all(
            document, candidates, jobs, lambda played, _fitting: progress(played / len(candidates))
        )
    record = found.identify(document, observations, seed)
    if as_json:
        print(json.dumps(record, indent=2))
    else:
        _show(document, [each for each in observations if each.fits], record)
    if write:
        declared = find_declaration(str(document.transport["name"]))
        assert declared
        accepted, kept = found.accepted_path(document, FOLDER), set_path(declared, document.set_name)
        write_text(accepted, found.format_record(record))
        write_text(kept, set_text(document, record))
        Screen(stderr=True).print(f"written: {accepted} and {kept}", highlight=False)


def _show(document: "Identification", fitting: "Sequence[Observation]", record: dict[str, Any]) -> None:
    from analysis.calibration.identification_table import table  # noqa: PLC0415
    from analysis.render import screen  # noqa: PLC0415

    console = Screen()
    console.print(screen.table_renderable(table(document, sorted(fitting, key=lambda each: each.rank))))
    missed = ", ".join(f"{count} by {variant}" for variant, count in record["rejected_by"].items())
    reported = f"{len(fitting)} of {record['candidates']} candidates fit; others miss it: {missed}."
    console.print(reported, highlight=False)
    departures = fitting and min(fitting, key=lambda each: each.rank).candidate.departures
    from_vendor = f"departs from the vendor's values in {', '.join(departures)}" if departures else "is the vendor's"
    console.print(f"The representative, in the first row, {from_vendor}. SHA-256 {record['hash']}", highlight=False)
