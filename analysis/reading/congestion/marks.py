# SPDX-License-Identifier: Apache-2.0
"""ECN marks, drops and pauses of a run, per iteration, attributed to jobs by iteration_attribution.py."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.reading.cells import CellTrials
from analysis.reading.congestion.iteration_attribution import Attribution, IterationEdges, attribute
from analysis.reading.data import PortPlace, counter_of_row, device_counters, iterations, ports, query, rows_with_arrays
from analysis.statistics.cumulative_counter import CumulativeCounter
from analysis.statistics.intervals import Array, stack_to_shortest
from roundabout.spec import TrialSpec
from roundabout.store import Run

SWITCHES, NICS = "switch ports", "NICs"
NIC_COUNTERS = {
    "marks": r"np_ecn_marked_roce_packets",
    "drops": r"[rt]x_discards_phy",
    "pauses": r"rx_prio\d_pause",
}
"""Patterns of NIC counters' names by what they count. NICs count marks and pauses as receivers, drops in both
directions.
"""

PLACE = {"trial": pa.string(), "link": pa.string(), "towards": pa.string(), "counter": pa.string()}
ITERATIONS = pa.schema({**PLACE, "job": pa.string(), "iteration": pa.int64(), "count": pa.int64(), "bound": pa.int64()})
SUMS = ("gained", "outside", "no_job", "no_source")
PORTS = pa.schema({**PLACE, **dict.fromkeys(SUMS, pa.int64())})


Span = tuple[int, int]
ALWAYS = (0, 2**63 - 1)


class PerIteration(NamedTuple):
    """A counter attributed to the iterations of jobs; `counted_by` is `switch ports` or `NICs`.

    `iterations` has one row for each iteration of a job and place at which its traffic is counted: trial, link, towards
    (the node at the link's other end), counter, job, iteration (from 0), count (null if unknown) and bound, the error
    of count. `ports` has one row for each place: the counter's gain from the first sample to the last, and its
    unattributed parts outside, no_job and no_source (see iteration_attribution.Attribution).
    """

    counted_by: str
    iterations: pa.Table
    ports: pa.Table


class JobMarks(NamedTuple):
    """One job's marks (or drops, or pauses) in one cell, over all places that count them.

    `repetitions` has one array for each repetition with one value for each iteration, nan if unknown. Repetitions
    without any known value are left out. No value is off by more than `bound`. `unattributed_share` is the share of the
    places' counts that is attributed to no iteration; None without a count.
    """

    counted_by: str
    repetitions: list[Array]
    bound: int
    unattributed_share: float | None

    @property
    def known(self) -> list[Array]:
        """Return the repetitions, restricted to the iterations whose values are known in all repetitions."""
        repetitions = stack_to_shortest(self.repetitions)
        return list(repetitions[:, np.isfinite(repetitions).all(axis=0)])


class _Place(NamedTuple):
    """A counter, its place, and its parts by source host; None if it does not separate them."""

    at: PortPlace
    counter: str
    counted: CumulativeCounter
    sources: dict[str, CumulativeCounter] | None


def per_iteration(run: Run, what: str = "marks") -> PerIteration | None:
    """Return ECN `marks`, `drops` or `pauses` per iteration of each job; None if nothing counted them.

    Counts come from switch ports. They are attributed by the table `marks`, or to the only job whose traffic leaves by
    a port. If no switch reports counts, those of the NICs of the jobs' hosts are used.
    """
    specs = {record["trial"]: TrialSpec.model_validate(record["spec"]) for record in run.trials()}
    of_jobs = _iterations(run)
    counted_by, places = SWITCHES, list(_at_switches(run, what))
    if not places:
        counted_by, places = NICS, list(_at_nics(run, what, specs))
    if not places:
        return None
    rows: list[dict[str, Any]] = []
    sums: list[dict[str, Any]] = []
    for place in places:
        where = {**place.at._asdict(), "counter": place.counter}
        joined = _attribute_place(place, specs[place.at.trial], of_jobs.get(place.at.trial, {}))
        rows.extend({**where, **row} for row in _rows(joined))
        sums.append({**where, **{name: getattr(joined, name) for name in SUMS}})
    return PerIteration(
        counted_by, pa.Table.from_pylist(rows, schema=ITERATIONS), pa.Table.from_pylist(sums, schema=PORTS)
    )


def marks_of_cells(run: Run, cells: Sequence[CellTrials]) -> list[dict[str, JobMarks]]:
    """Return for each cell the marks per iteration of each job for which they are known."""
    counted = per_iteration(run, "marks") if cells else None
    if counted is None:
        return [{} for _ in cells]
    found = ({job: _of_job(counted, cell.trials, job) for job in cell.times} for cell in cells)
    return [{job: own for job, own in each.items() if own.repetitions and len(own.known[0])} for each in found]


def _of_job(counted: PerIteration, trials: Sequence[str], job: str) -> JobMarks:
    mine = counted.iterations.filter((pc.field("job") == job) & pc.field("trial").isin(list(trials)))
    total = pc.ScalarAggregateOptions(skip_nulls=False)
    sums = mine.group_by(["trial", "iteration"]).aggregate([("count", "sum", total), ("bound", "sum", total)])
    found = [sums.filter(pc.field("trial") == trial).sort_by("iteration")["count_sum"] for trial in trials]
    places = mine.group_by(list(PLACE)).aggregate([]).join(counted.ports, list(PLACE), join_type="inner")
    gained, *rest = (pc.sum(places[name]).as_py() or 0 for name in SUMS)
    return JobMarks(
        counted.counted_by,
        [each.cast(pa.float64()).to_numpy() for each in found if each.null_count < len(each)],
        pc.max(sums["bound_sum"]).as_py() or 0,
        sum(rest) / gained if gained else None,
    )


def _rows(joined: Attribution) -> Iterator[dict[str, Any]]:
    for job, gains in joined.jobs.items():
        for number, (count, bound, known) in enumerate(zip(*(each.tolist() for each in gains), strict=True)):
            yield {
                "job": job,
                "iteration": number,
                "count": count if known else None,
                "bound": bound if known else None,
            }


def _iterations(run: Run) -> dict[str, dict[str, IterationEdges]]:
    """Return the begins of iterations, and the end of the last one, per trial and job."""
    result: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for row in iterations(run).to_pylist():
        result.setdefault(row["trial"], {}).setdefault(row["job"], []).append(row)
    return {trial: {job: _edges(rows) for job, rows in jobs.items()} for trial, jobs in result.items()}


def _edges(rows: Sequence[dict[str, Any]]) -> IterationEdges:
    edges_ns = [*(row["start_ns"] for row in rows), rows[-1]["comm_end_ns"]]
    return IterationEdges(np.array(edges_ns, np.int64), max(row["offset_bound_ns"] for row in rows))


def _attribute_place(place: _Place, spec: TrialSpec, of_jobs: Mapping[str, IterationEdges]) -> Attribution:
    crossing = [job for job in of_jobs if _sends_over(spec, job, place.at)]
    if place.sources is None:
        alone = len(crossing) == 1
        return attribute(place.counted, {job: [place.counted] if alone else None for job in crossing}, [], of_jobs)
    owned: dict[str, list[CumulativeCounter] | None] = {}
    spans = {host: _sending_spans(host, spec, of_jobs) for host in place.sources}
    for job in crossing:
        hosts = [host for host in spec.jobs[job].hosts if host in place.sources]
        reported = all(spans[host] for host in hosts)
        owned[job] = [place.sources[host].restrict_to(*spans[host][job]) for host in hosts] if reported else None
    parts = [(host, span) for host in spans for span in _unclaimed_spans(spans[host], owned)]
    others = [place.sources[host].restrict_to(*span) for host, span in parts]
    return attribute(place.counted, owned, others, of_jobs)


def _sending_spans(host: str, spec: TrialSpec, of_jobs: Mapping[str, IterationEdges]) -> dict[str, Span]:
    """Return when a host's packets are each job's: from its first iteration to the next job's.

    None if jobs ran at once.
    """
    users = sorted((job for job in of_jobs if host in spec.jobs[job].hosts), key=lambda job: of_jobs[job].edges_ns[0])
    edges = [of_jobs[job].edges_ns for job in users]
    if any(after[0] < before[-1] for before, after in pairwise(edges)):
        return {}
    cuts = [ALWAYS[0], *(int(each[0]) for each in edges[1:]), ALWAYS[1]]
    return dict(zip(users, pairwise(cuts), strict=False))


def _unclaimed_spans(spans: Mapping[str, Span], owned: Mapping[str, object]) -> list[Span]:
    """Return when a host's packets at a place are no job's: all the time without spans."""
    return [span for job, span in spans.items() if owned.get(job) is None] if spans else [ALWAYS]


def _sends_over(spec: TrialSpec, job: str, at: PortPlace) -> bool:
    """Return True if any of the job's data take this link in this direction."""
    return any((hop.link.name, hop.receiver) == (at.link, at.towards) for hop in spec.hops(job))


def _at_switches(run: Run, what: str) -> Iterator[_Place]:
    at_ports = ports(run, what)
    sources = _sources(run, at_ports) if what == "marks" else {}
    for at, port in at_ports.items():
        # A port that counted nothing has no sources, which is no lack of knowledge.
        yield _Place(at, what, port, sources.get(at, None if port.total_gain else {}))


def _sources(
    run: Run, at_ports: Mapping[PortPlace, CumulativeCounter]
) -> dict[PortPlace, dict[str, CumulativeCounter]]:
    """Return marks by the host of the marked packets, at each port that marked any."""
    rows = query(
        run,
        """
        select trial, link, towards, source, max(offset_bound_ns) as bound_ns, 64 as width_bits,
               list(controller_ns order by controller_ns) as at_ns, list(marks order by controller_ns) as counts
        from marks group by all order by trial, link, towards, source
        """,
    )
    result: dict[PortPlace, dict[str, CumulativeCounter]] = {}
    for row in rows_with_arrays(rows):
        at = PortPlace(row["trial"], row["link"], row["towards"])
        # A source appears with its first mark: until then, it had none.
        port_ns = at_ports[at].at_ns
        before = port_ns[port_ns < row["at_ns"][0]]
        padded = {name: np.concatenate([own, row[name]]) for name, own in (("at_ns", before), ("counts", before * 0))}
        result.setdefault(at, {})[row["source"]] = counter_of_row({**row, **padded})
    return result


def _at_nics(run: Run, what: str, specs: Mapping[str, TrialSpec]) -> Iterator[_Place]:
    for (trial, host, _, counter), part in device_counters(run, NIC_COUNTERS[what]).items():
        link = ", ".join(link.name for link in specs[trial].topology.links_of(host))
        yield _Place(PortPlace(trial, link, host), counter, part, {host: part})
