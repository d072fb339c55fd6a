# SPDX-License-Identifier: Apache-2.0
"""Experiments of the catalog under DCQCN's former rule and parameters, and under their present ones, packet by packet.

    python -m tests.packets.comparisons.dcqcn_rules [NAME...] [--json]

Until sets stated `clamp_target`, all of them had SIGCOMM'15's rule, 1: the target rate follows every cut. And the
experiments of HotNets'22 named no set. Each experiment is played in short: some of its cells, with seed 1, for as long
as `CASES` states. A figure is the mean iteration time of the baseline's first job in the second half of the iterations,
in ms, or the baseline's over another cell's, for the job that gains least.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

import roundabout
from analysis.reading.cells import CellTrials, cells_of, experiment_of, first_shares
from analysis.reading.speedups import baseline_of

CLAMPED = {"transport.clamp_target": 1}
"""SIGCOMM'15's rule, beside an experiment's present set."""
WITHOUT_SET = {"transport.set": None}
"""What the experiments of HotNets'22 had before their set was identified."""


class Case(NamedTuple):
    """An experiment in short: the levels that are played, fields that shorten it, and whether it lacked its set."""

    name: str
    only: tuple[str, ...]
    fields: Mapping[str, Any]
    lacked_set: bool = False

    @property
    def settings(self) -> dict[str, dict[str, Any]]:
        """Return the overrides of each column, by its title."""
        return {"former": (WITHOUT_SET if self.lacked_set else {}) | CLAMPED, "present": {}}


def departing(after_ms: float, jobs: int = 2) -> dict[str, float]:
    """Return fields that let all jobs leave at one instant, ms."""
    return {f"jobs.j{place}.departs_ms": after_ms for place in range(1, jobs + 1)}


CASES = (
    Case("unfair-vgg19", ("fair", "unfair"), {"iterations": 12}, lacked_set=True),
    Case("dilated-vgg19", ("fair", "unfair"), {"iterations": 12}),
    Case("unfair-table1", ("1", "fair", "unfair"), departing(2500), lacked_set=True),
    Case("unfair-table1", ("2", "fair", "unfair"), departing(10000), lacked_set=True),
    Case("unfair-table1", ("4", "fair", "unfair"), departing(2500), lacked_set=True),
    Case("unfair-table1", ("5", "fair", "graded"), departing(3200, jobs=3), lacked_set=True),
    Case("compare-all", ("compatible", "fair", "unfair", "adaptive", "mltcp"), {"iterations": 12}, lacked_set=True),
    Case("ways-to-interleave", ("incompatible", "fair", "unfair", "mltcp"), departing(3000), lacked_set=True),
    Case("base-states", ("dcqcn",), {"iterations": 8}, lacked_set=True),
    Case("mltcp-dcqcn", ("fair", "mltcp"), {"iterations": 14}),
    Case("mltcp-rates", ("vgg19", "dcqcn", "fair", "mltcp-dcqcn"), {"iterations": 14}),
    Case("mltcp-vgg19", ("vgg19-fig1", "dcqcn", "fair", "mltcp-dcqcn"), {"iterations": 14}),
    Case("cassini-vgg", ("two-vgg19", "fair", "cassini"), {"iterations": 10}),
    Case("websearch-bert", (), {"iterations": 5, "load_gbps": [0, 11, 17]}),
)


def settled_ms(cell: CellTrials, job: str) -> float:
    """Return a job's mean iteration time in the second half of its iterations, ms."""
    times = cell.times[job][1]
    return float(np.mean(times[len(times) // 2 :]))


def figures(case: Case, overrides: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield the figures of a case, each with its name."""
    experiment = roundabout.load_experiment(case.name, set={**case.fields, **overrides}, only=case.only, repetitions=1)
    with tempfile.TemporaryDirectory() as folder:
        run = roundabout.run_experiment(experiment, testbed="packets", runs=folder, quiet=True)
        cells, base = cells_of(run), experiment_of(run).baseline
        for cell in cells:
            slow = baseline_of(cells, cell, base.level, base.factor)
            if cell.spec.one_job_at_a_time:
                continue
            if slow is None or slow is cell:
                yield f"{cell.id.name}, ms", settled_ms(cell, cell.jobs[0])
                continue
            yield (
                f"{cell.id.name} over {base.level}",
                min(settled_ms(slow, job) / settled_ms(cell, job) for job in cell.jobs),
            )
            if cell.variant == "unfair" and (shares := first_shares(run, cell, *cell.jobs[:2])):
                yield f"{cell.id.name}, share", shares[0]


def compare(case: Case) -> Iterator[dict[str, Any]]:
    """Yield each figure of a case with its value in every column."""
    columns = {title: dict(figures(case, overrides)) for title, overrides in case.settings.items()}
    for figure in next(iter(columns.values())):
        yield {"experiment": case.name, "figure": figure, **{title: own[figure] for title, own in columns.items()}}


def main() -> None:
    """Play the cases of the named experiments, or all, and print a line for each figure as soon as it is known."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="experiments; default: all of CASES")
    parser.add_argument("--json", action="store_true", help="print one JSON object on each line, for programs")
    options = parser.parse_args()
    if strange := {*options.names} - {case.name for case in CASES}:
        parser.error(f"found {min(strange)}, expected some of {', '.join(dict.fromkeys(case.name for case in CASES))}")
    for case in CASES:
        if not options.names or case.name in options.names:
            for row in compare(case):
                print(json.dumps(row) if options.json else describe(row), flush=True)


def describe(row: dict[str, Any]) -> str:
    """Return a figure as a line of text."""
    values = ", ".join(f"{title} {row[title]:.5g}" for title in list(row)[2:])
    return f"{row['experiment']}: {row['figure']}: {values}"


if __name__ == "__main__":
    main()
