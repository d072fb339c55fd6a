# SPDX-License-Identifier: Apache-2.0
"""A job's profile from Chakra's execution traces without start times."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from analysis.reading.measured_profile import phase_names
from analysis.records.call import Kind, RecordError
from analysis.records.collective_groups import PATTERN_OF, worker_bytes
from analysis.records.execution_schedule import Rates, Schedule, Sending, make_schedule
from analysis.records.fields import quote_value
from analysis.records.readers.chakra import RANK_IN_NAME, Groups
from analysis.records.readers.chakra_graph import UNUSED, Graph, read_graph, read_group_file
from roundabout.spec import Phase, Profile

LEAST_MS = 1e-6
"""Shorter stretches of computing are left out: they are rounding errors of sums of microseconds."""


@dataclass(frozen=True)
class ExecutionProfile:
    """A profile made from execution traces, with sentences on what they lack."""

    profile: Profile
    caveats: tuple[str, ...]


def make_execution_profile(paths: Sequence[Path], name: str, rates: Rates) -> ExecutionProfile:
    """Return the profile of a job with one trace for each rank, and at most one file of groups.

    Raises RecordError for files that cannot be read, missing ranks, and ranks that communicate differently.
    """
    traces = [path for path in paths if RANK_IN_NAME.search(path.name)]
    groups = _listed_groups([path for path in paths if path not in traces])
    graphs = sorted((read_graph(path) for path in traces), key=lambda graph: graph.rank)
    _check_ranks(graphs, paths)
    for graph in graphs:
        groups |= graph.groups
    schedules = [make_schedule(graph, groups | graph.groups, len(graphs), rates) for graph in graphs]
    _check_alike(graphs, schedules)
    return ExecutionProfile(_make_profile(name, graphs, schedules, rates), tuple(_caveats(graphs, schedules, rates)))


def _listed_groups(paths: Sequence[Path]) -> Groups:
    if len(paths) > 1:
        names = ", ".join(path.name for path in paths[:8])
        raise RecordError(f"{paths[0].parent}: found {names} beside traces, expected one file of groups at most")
    return read_group_file(paths[0]) if paths else {}


def _check_ranks(graphs: Sequence[Graph], paths: Sequence[Path]) -> None:
    found = [graph.rank for graph in graphs]
    if len(found) < 2 or found != list(range(len(found))):
        listed = ", ".join(map(str, found[:8])) or "none"
        named = ", ".join(path.name for path in paths[:3]) or "no files"
        raise RecordError(
            f"{named}: found ranks {listed}, expected each rank from 0 on, two at least",
            "give one trace a rank, of one job: <prefix>.0.et, <prefix>.1.et, ...",
        )


def _check_alike(graphs: Sequence[Graph], schedules: Sequence[Schedule]) -> None:
    """Raise RecordError unless all ranks have collectives of the same shapes in order, in groups that lie apart."""
    first = [each.shape for each in schedules[0].sendings]
    if not first:
        raise RecordError(f"{graphs[0].path}: found no collective between ranks, expected some")
    for graph, schedule in zip(graphs, schedules, strict=True):
        shapes = [each.shape for each in schedule.sendings]
        if shapes != first:
            at = next((at for at, (one, other) in enumerate(zip(shapes, first, strict=False)) if one != other), None)
            number = min(len(shapes), len(first)) if at is None else at
            raise RecordError(
                f"{graph.path}: found {_describe(shapes, number)} as collective {number + 1}, but "
                f"{_describe(first, number)} in rank 0, expected ranks that communicate alike",
                "a profile has one sequence of phases for all workers",
            )
    for graph, schedule in zip(graphs, schedules, strict=True):
        for number, each in enumerate(schedule.sendings):
            other = next((o for o in each.members if schedules[o].sendings[number].members != each.members), None)
            if other is not None:
                what = f"collective {number + 1} ({quote_value(each.name)}) is of another group in rank {other}"
                raise RecordError(f"{graph.path}: {what}, expected one group for both")


def _describe(shapes: Sequence[tuple[Kind, int, int]], number: int) -> str:
    if number >= len(shapes):
        return "none"
    kind, ranks, size = shapes[number]
    return f"{kind} of {size} bytes among {ranks}"


def _make_profile(name: str, graphs: Sequence[Graph], schedules: Sequence[Schedule], rates: Rates) -> Profile:
    parts = list(_parts(schedules, rates))
    names = phase_names(["bytes" in part for part in parts])
    phases = tuple(Phase(name=each, **part) for each, part in zip(names, parts, strict=True))
    return Profile(
        name=name,
        model="not in its traces",
        workers=len(graphs) if any(phase.groups for phase in phases) else None,
        source=(
            f"Chakra's execution traces of {len(graphs)} ranks ({graphs[0].path.name}): begins follow from "
            f"dependencies; sent at {rates.payload_gbps:g} Gbit/s of payload"
        ),
        phases=phases,
    )


def _parts(schedules: Sequence[Schedule], rates: Rates) -> Iterator[dict[str, Any]]:
    """Yield the fields of each phase but its name: in turn computing, which may be missing, and a collective."""
    computing_ms = [max(each) for each in zip(*(each.computing_ms for each in schedules), strict=True)]
    sendings = zip(*(each.sendings for each in schedules), strict=True)
    for compute_ms, sending in zip_longest(computing_ms, sendings):
        if compute_ms > LEAST_MS:
            yield {"compute_ms": round(compute_ms, 6), "source": "the traces' computing that no collective hides"}
        if sending:
            yield _send_part(sending, rates)


def _send_part(sendings: Sequence[Sending], rates: Rates) -> dict[str, Any]:
    """Return the fields of the phase of a collective, from those of all ranks."""
    one = sendings[0]
    groups = tuple(sorted({each.members for each in sendings}))
    lasts_ms = max(each.end_ms - each.begin_ms for each in sendings)
    hidden = max(each.hidden_ms for each in sendings)
    beside = f", beside computing that goes on for {hidden:.3f} ms more" if hidden > LEAST_MS else ""
    return {
        "bytes": worker_bytes(*one.shape),
        "alone_ms": math.ceil(lasts_ms * 1e6) / 1e6,
        "pattern": PATTERN_OF[one.kind],
        "groups": None if groups == (tuple(range(len(sendings))),) else groups,
        "source": f"node {one.name[:60]!r}: {_describe([one.shape], 0)}, at {rates.payload_gbps:g} Gbit/s{beside}",
    }


def _caveats(graphs: Sequence[Graph], schedules: Sequence[Schedule], rates: Rates) -> Iterator[str]:
    """Yield a sentence on each thing that the traces lack, or that is not used."""
    kinds = {each.kind for each in schedules[0].sendings}
    yield "A trace is taken for one iteration, which repeats."
    yield "The algorithm of a collective is not in a trace: rings are taken, and all-to-alls send to all at once."
    if kinds & {"broadcast", "reduce"}:
        yield "The root of a broadcast or reduce is not in a trace: the first rank of its group is taken."
    if any(each.hidden_ms > LEAST_MS for schedule in schedules for each in schedule.sendings):
        yield (
            "Computing goes on beside collectives: each sends evenly until the first node begins that waits for it or "
            "for the network."
        )
    operations = [each for graph in graphs for each in graph.operations.values()]
    if counted := sum(not each.duration_us and each.operations > 0 for each in operations):
        yield f"{counted} nodes have num_ops and no duration_micros: they compute at {rates.tflops:g} TFLOP/s."
    if timed := sum(each.collective is not None and each.duration_us > 0 for each in operations):
        yield f"{timed} collectives have a duration_micros, of the network that they ran on: it is not used."
    untimed: Counter[str] = sum((graph.untimed for graph in graphs), Counter())
    for kind, number in sorted(untimed.items()):
        yield f"{number} nodes last no time ({kind})."
    if missing := sum(len(graph.missing) for graph in graphs):
        yield f"{missing} nodes that others wait for are not in the traces: nothing waits for them."
    slowest, fastest = (choose(each.end_ms for each in schedules) for choose in (max, min))
    if slowest - fastest > LEAST_MS:
        yield f"Ranks take {fastest:.3f} to {slowest:.3f} ms alone: of each phase, the longest is taken."
    if unused := [name for name in UNUSED if any(name in graph.unused for graph in graphs)]:
        yield f"Attributes that are not used: {', '.join(unused)}."
