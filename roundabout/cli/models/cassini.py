# SPDX-License-Identifier: Apache-2.0
"""`roundabout cassini`: compute the compatibility score of jobs on a link, and their time-shifts."""

import json
import math
from collections import Counter
from collections.abc import Sequence
from typing import Annotated

import typer

from roundabout.cli.options import Json, Picture, check_capacity, check_picture, finite_number, save_picture
from roundabout.core.errors import UsageError
from roundabout.models.cassini import Circle, circle_of, rotate, unify
from roundabout.models.cassini.circles import MAX_TURNS, PERIOD_ERROR
from roundabout.spec import load_profile
from roundabout.terminal.screen import Screen


def command(  # noqa: PLR0913, PLR0917 - one a command-line option
    profiles: Annotated[
        list[str],
        typer.Argument(metavar="PROFILE...", help="The jobs' profiles, by name or file. The first job is not rotated."),
    ],
    capacity: Annotated[
        float,
        typer.Option(metavar="GBPS", help="Capacity of the link, Gbit/s."),
    ],
    precision: Annotated[
        float | None,
        typer.Option(
            max=360,
            callback=finite_number,
            metavar="DEGREES",
            help="Step of rotations on the unified circle. Default: 72 steps for the shortest job.",
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Allow only one job to send at a time, at any rate (HotNets'22).")
    ] = False,
    period_error: Annotated[
        float, typer.Option(metavar="PERCENT", help="Tolerance of iteration times for the circle's perimeter.")
    ] = 100 * PERIOD_ERROR,
    turns: Annotated[
        int, typer.Option(min=1, max=64, help="Largest number of a job's iterations on the circle.")
    ] = MAX_TURNS,
    shifts: Annotated[
        str | None, typer.Option(metavar="MS,MS,...", help="Only score these time-shifts, one for each job.")
    ] = None,
    picture: Picture = None,
    as_json: Json = False,
) -> None:
    """Search the rotations with which jobs' demands interleave best. Print score, rotations and time-shifts."""
    from analysis.render import screen  # noqa: PLC0415
    from analysis.reports import cassini as circles  # noqa: PLC0415 - `--help` need not wait for it

    check_picture(picture)
    check_capacity(capacity)
    if not 0 <= period_error < 100:
        raise UsageError(f"--period-error: found {period_error:g} %, expected 0 at least and less than 100")
    given = _parse_shifts(shifts, len(profiles))
    found = rotate(unify(_load_circles(profiles), period_error / 100, turns), capacity, precision, strict=strict)
    if picture:
        save_picture(circles.figure(found), picture)
    if as_json:
        print(json.dumps(circles.record(found, given), indent=2))
        return
    console = Screen()
    console.print(
        screen.table_renderable(circles.table(found)), circles.verdict(found, given), sep="\n", highlight=False
    )


def _parse_shifts(shifts: str | None, jobs: int) -> tuple[float, ...] | None:
    """Return the time-shifts of the option, ms."""
    if shifts is None:
        return None
    try:
        given = tuple(map(float, shifts.split(",")))
    except ValueError:
        given = ()
    if len(given) != jobs or not all(map(math.isfinite, given)):
        raise UsageError(f"--shifts: found '{shifts}', expected {jobs} numbers with commas between them, one a job")
    return given


def _load_circles(profiles: Sequence[str]) -> list[Circle]:
    """Return a circle for each profile. Jobs with the same profile are numbered."""
    loaded = [load_profile(name) for name in profiles]
    times, seen = Counter(profile.name for profile in loaded), Counter[str]()
    circles = []
    for profile in loaded:
        seen[profile.name] += 1
        job = f"{profile.name} #{seen[profile.name]}" if times[profile.name] > 1 else profile.name
        circles.append(circle_of(profile, job))
    return circles
