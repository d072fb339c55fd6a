# SPDX-License-Identifier: Apache-2.0
"""The fidelity of a run's figures, as its testbed stated it when the run began."""

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
    """Return True if the run was computed by a model that draws nothing from seeds but what trials ask for."""
    testbed = run.manifest["testbed"]
    return read_fidelity(testbed).nature == "computed" and not testbed.get("has_jitter", False)


def fidelity_of(run: Run) -> Fidelity:
    """Return a run's fidelity; its limits include the parts of the run's trainers that the project has never run."""
    said = read_fidelity(run.manifest["testbed"])
    jobs = [job for cell in experiment_of(run).cells for job in cell.spec.jobs.values()]
    ways = {
        way
        for job in jobs
        if said.nature != "computed" and (way := job.trainer.describe_unproven(said.nature == "real"))
    }
    never = (f"{way}: never run by this project on any testbed" for way in sorted(ways))
    return replace(said, cannot=(*said.cannot, *never))
