# SPDX-License-Identifier: Apache-2.0
"""The fidelity of a run's figures, as its testbed stated it when the run began."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from analysis.reading.cells import experiment_of
from roundabout.store import Run

CANNOT = (
    "RDMA: the jobs speak kernel TCP, paced by an eBPF copy of DCQCN's reaction point",
    "PFC: a lossless fabric is a deep queue, without pause frames, head-of-line blocking or go-back-N",
    "microseconds: rates are divided by the scale and times are not, so feedback comes every few hundred "
    "microseconds instead of every few; the reaction point's constants are calibrated for that",
    "GPUs: a job is its profile, played over real sockets",
)
"""Limits of labs whose stored runs do not state their limits."""


@dataclass(frozen=True)
class Fidelity:
    """A run's fidelity.

    `nature` is real, emulated or computed. `stamp` describes the fidelity in a line, `about` in a paragraph, and
    `cannot` lists the limits.
    """

    nature: str
    stamp: str
    about: str
    cannot: tuple[str, ...]


def read_fidelity(testbed: dict[str, Any]) -> Fidelity:
    """Return the fidelity stated in the testbed's block of a manifest or summary, else that of a lab or a rack."""
    if said := testbed.get("fidelity"):
        return Fidelity(**{**said, "cannot": tuple(said["cannot"])})
    if not testbed["emulated"]:
        return Fidelity("real", f"real: {testbed['kind']}", "Measured on real hosts and switches.", ())
    return Fidelity(
        "emulated",
        f"emulated: {testbed['kind']}, rates and bytes at 1:{testbed['scale']:g}, times as they are",
        f"Everything ran on one machine: hosts are Linux namespaces, links are shaped to 1:{testbed['scale']:g} of "
        "their rate, and messages are as much smaller. Iteration times are unchanged and compare with the paper's "
        "directly; rates and bytes on this page were multiplied back. What this cannot show:",
        CANNOT,
    )


def is_repeatable(run: Run) -> bool:
    """Return True if the run was computed by a model that draws from seeds only for random features of trials."""
    testbed = run.manifest["testbed"]
    return read_fidelity(testbed).nature == "computed" and not testbed.get("has_jitter", False)


def fidelity_of(run: Run) -> Fidelity:
    """Return a run's fidelity.

    Its limits include the parts of the run's trainers that the project has never run, routes that are not the planned
    ones, and skipped iterations.
    """
    said = read_fidelity(run.manifest["testbed"])
    cells = experiment_of(run).cells
    jobs = [job for cell in cells for job in cell.spec.jobs.values()]
    ways = {
        way
        for job in jobs
        if said.nature != "computed" and (way := job.trainer.describe_unproven(said.nature == "real"))
    }
    never = (f"{way}: never run by this project on any testbed" for way in sorted(ways))
    may_differ = said.nature != "computed" and not all(cell.spec.topology.is_tree for cell in cells)
    routes = describe_found_routes(run.trials()) if may_differ else []
    return replace(said, cannot=(*said.cannot, *never, *routes, *describe_skipped(run.trials())))


def describe_found_routes(trials: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line if switches gave flows other routes than planned, or unknown ones, by the records of trials."""
    found = [route["as_planned"] for trial in trials for route in trial.get("found_routes", ())]
    if all(found):
        return []
    other, unknown = found.count(False), found.count(None)
    return [
        f"routes: of {len(found)} flows, summed over trials, {other} took other switches than planned, and of "
        f"{unknown} it is not known (found_routes in trial.json); limits and scores on this page are of the planned "
        "routes"
    ]


def describe_skipped(trials: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line on skipped iterations and the bound of their error, by the records of trials that allow it."""
    said = [trial["skipped"] for trial in trials if "skipped" in trial]
    if not said:
        return []
    jobs = [job for each in said for job in each["jobs"].values()]
    refused = "".join(f"; {reason}" for reason in dict.fromkeys(each["refused"] for each in said if each["refused"]))
    if not jobs:
        return [f"skipping: no iteration was skipped{refused or ': no trial came to a steady state'}"]
    skipped = sum(job["skipped"] for job in jobs)
    played, shortened = sum(job["played"] for job in jobs), sum(bool(each["jobs"]) for each in said)
    return [
        f"skipped iterations: in {shortened} of {len(said)} trials jobs came to a steady state, and {skipped} of "
        f"{played + skipped} of their iterations repeat earlier ones. That changes a job's mean and median iteration "
        f"time by at most {max(job['bound_ms'] for job in jobs):.3g} ms, by 99 % prediction intervals (skipped in "
        f"trial.json); other percentiles are those of the played iterations, and counters end with these{refused}"
    ]
