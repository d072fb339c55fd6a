# SPDX-License-Identifier: Apache-2.0
"""Use, queues and marks of the cables between switches, where a topology has several paths."""

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import NamedTuple

from analysis.reading.cells import CellTrials
from analysis.reading.data import query
from roundabout.spec import TrialSpec
from roundabout.store import Run


class CableUse(NamedTuple):
    """A cable in one direction while jobs ran: means over a cell's trials, None if not measured."""

    cell: CellTrials
    cable: str
    towards: str
    jobs: tuple[str, ...]  # whose planned routes cross it
    gbps: float
    line_rate_gbps: float
    backlog_kb: float | None
    most_backlog_kb: float | None
    marks: float | None


def cable_uses(run: Run, cells: Sequence[CellTrials]) -> list[CableUse]:
    """Return the use of cables between switches that jobs cross. Cells whose topology is a tree have none."""
    routed = [cell for cell in cells if not cell.spec.topology.is_tree and not cell.spec.one_job_at_a_time]
    rows = _read(run) if routed else {}
    return [use for cell in routed for use in _uses_of_cell(cell, rows)]


Rows = dict[tuple[str, str, str], dict[str, float | None]]
FIGURES = ("gbps", "backlog_kb", "most_backlog_kb", "marks")


def _read(run: Run) -> Rows:
    """Return the figures of each trial, link and receiver, from the first job's start to the last one's end."""
    found = query(
        run,
        """
        with span as (select trial, min(start_ns) as begins, max(comm_end_ns) as ends from iterations group by trial)
        select trial, link, towards,
               (max(tx_bytes) - min(tx_bytes)) * 8.0 / (max(controller_ns) - min(controller_ns)) as gbps,
               avg(backlog_bytes) / 1e3 as backlog_kb, max(backlog_bytes) / 1e3 as most_backlog_kb,
               max(marks) - min(marks) as marks
        from queue join span using (trial) where controller_ns between begins and ends
        group by trial, link, towards having count(*) > 1
        """,
    )
    return {(row["trial"], row["link"], row["towards"]): row for row in found.to_pylist()}


def _uses_of_cell(cell: CellTrials, rows: Rows) -> Iterator[CableUse]:
    links = {link.name: link for link in cell.spec.topology.links}
    for (cable, towards), jobs in _jobs_of_cables(cell.spec).items():
        own = [rows[trial, cable, towards] for trial in cell.trials if (trial, cable, towards) in rows]
        if own:
            gbps, *others = (_mean([row[name] for row in own]) for name in FIGURES)
            yield CableUse(cell, cable, towards, tuple(jobs), gbps or 0.0, links[cable].line_rate_gbps, *others)


def _jobs_of_cables(spec: TrialSpec) -> dict[tuple[str, str], dict[str, None]]:
    """Return the jobs that cross each cable between switches, by cable and receiver, in the topology's order."""
    switches = set(spec.topology.switches)
    found: dict[tuple[str, str], dict[str, None]] = {
        (link.name, end): {} for link in spec.topology.links if switches.issuperset(link.ends) for end in link.ends
    }
    for job in spec.jobs:
        for hop in spec.hops(job):
            if (hop.link.name, hop.receiver) in found:
                found[hop.link.name, hop.receiver][job] = None
    return {place: jobs for place, jobs in found.items() if jobs}


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
