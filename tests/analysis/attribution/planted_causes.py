# SPDX-License-Identifier: Apache-2.0
"""Experiments in which one cause delays the job j1, and experiments without such a cause."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from analysis.attribution.counterfactuals import Cause
from roundabout import build_experiment
from roundabout.spec import Experiment, TrialSpec
from tests.two_phases import two_phases

COMPUTE_MS, SEND_MS, SIZE = 4.0, 6.0, 24_000_000
"""Of an iteration alone. Sending takes 32 of 43 Gbit/s, so that two jobs do not fit beside each other."""
SHORT_MS, SMALL = 2.0, 8_000_000
"""The same for jobs that fit into each other's computing time."""
ITERATIONS = 8
IN_LAB = {"iterations": 15, "repetitions": 5}
LARGER = 20
"""How many times as large iterations are in a lab, whose links carry a thousandth of the bytes in the same time."""


@dataclass(frozen=True)
class Planted:
    """A trial with a cause of delay of j1, and the cause with its name if it has one; None without any.

    `slowed` is a factor of j1's computing times on its slowest worker. The model gets it, the spec lacks it.
    `mean_slowed` is the mean of the factor over workers.
    """

    file: Mapping[str, Any]
    cause: Cause | None = None
    name: str = ""
    slowed: float = 1.0
    mean_slowed: float = 1.0

    @cached_property
    def spec(self) -> TrialSpec:
        """The trial."""
        return build_experiment(self.file).cells[0].spec

    def in_lab(self) -> Experiment:
        """Return an experiment of the trial with iterations that are LARGER times as large."""
        jobs = {name: _later(job) for name, job in self.file["jobs"].items()}
        resized = {"compute": LARGER, "bytes": LARGER}
        return build_experiment({**self.file, **IN_LAB, "jobs": jobs, "resized": resized})


def _later(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return a job of a file with a start that is LARGER times as late."""
    return {**job, "start_offset_ms": LARGER * job.get("start_offset_ms", 0.0)}


def _trial(jobs: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "name": "planted",
        "about": "a cause is planted",
        "topology": "dumbbell-2x2",
        "profiles": {
            "long": two_phases(COMPUTE_MS, SIZE, SEND_MS),
            "short": two_phases(SEND_MS + COMPUTE_MS - SHORT_MS, SMALL, SHORT_MS),
        },
        "profile": "long",
        "jobs": jobs,
        "transport": {"name": "dcqcn"},
        "iterations": ITERATIONS,
        **fields,
    }


J1 = {"j1": {"workers": ["s0", "s2"]}}
APART = {**J1, "j2": {"workers": ["s1", "s3"]}}


def neighbor() -> Planted:
    """Two jobs on one link that begin at once."""
    return Planted(_trial(APART), "job", "j2")


def cross_traffic() -> Planted:
    """Long-lived flows that take half of the link."""
    iperf = {"kind": "iperf", "from": "s1", "to": ["s3"], "load_gbps": 25, "transport": {"name": "dcqcn"}}
    return Planted(_trial(J1, cross_traffic={"iperf": iperf}), "cross traffic", "iperf")


def one_path() -> Planted:
    """Two jobs whose flows ECMP sends over one of two spines (experiments/catalog/fabrics/ecmp-collision.yaml)."""
    routing = {"name": "ecmp", "seed": 2}
    return Planted(_trial(APART, topology="leaf-spine-2x2", routing=routing), "colliding paths")


def slow_worker() -> Planted:
    """A worker that computes 1.5 times as long as the profile says."""
    return Planted(_trial(J1), "slowest worker", slowed=1.5)


def slow_job() -> Planted:
    """Workers that all compute 1.5 times as long as the profile says."""
    return Planted(_trial(J1), "computing time", slowed=1.5, mean_slowed=1.5)


def slow_link() -> Planted:
    """A link at half of its rate, which j1 would use more."""
    event = {"at_ms": 0, "link": "L1", "what": "slows", "share": 0.5}
    return Planted(_trial(J1, events=[event]), "link events")


def lossy_link(share: float = 0.005) -> Planted:
    """A link that loses this share of packets."""
    event = {"at_ms": 0, "link": "L1", "what": "loses", "share": share}
    return Planted(_trial(J1, events=[event]), "link events")


def paced_sender() -> Planted:
    """A sender at less than half of the link's rate."""
    return Planted(_trial(J1, transport={"name": "dcqcn", "R_max_mbps": 15_000}), "transport", "dcqcn")


def slow_recovery() -> Planted:
    """Two jobs that mostly fit beside each other, and whose rates recover slowly after a cut."""
    slow = {"name": "dcqcn", "T_us": 1500, "byte_counter_bytes": 0, "rate_on_first_cnp_mbps": 5000}
    jobs = {name: {**job, "profile": "short"} for name, job in APART.items()}
    return Planted(_trial(jobs, transport=slow), "transport", "dcqcn")


def marking_off() -> Planted:
    """Two jobs that meet behind a fast link, which PFC pauses for j1, too, because no switch marks."""
    switches = {"s0": "tor0", "s1": "tor0", "s2": "tor0", "s3": "tor1", "s4": "tor2", "s5": "tor2"}
    topology = {
        "schema": 1,
        "name": "victim",
        "about": "a fast link before one that is shared",
        "line_rate_gbps": 50,
        "payload_rate_gbps": 43,
        "queue": "lossless",
        "hosts": [*switches],
        "switches": ["tor0", "tor1", "tor2"],
        "links": [
            *({"name": host, "ends": [host, switch]} for host, switch in switches.items()),
            {"name": "L1", "ends": ["tor0", "tor1"], "line_rate_gbps": 200, "payload_rate_gbps": 172},
            {"name": "L2", "ends": ["tor1", "tor2"]},
        ],
    }
    jobs = {"j1": {"workers": ["s0", "s3"]}, "j2": {"workers": ["s1", "s4"]}, "j3": {"workers": ["s2", "s5"]}}
    unmarked = {"name": "dcqcn", "ecn": {"Kmin_bytes": 900_000_000, "Kmax_bytes": 1_000_000_000, "Pmax": 0.01}}
    return Planted(
        _trial(jobs, topology="victim", topologies={"victim": topology}, transport=unmarked), "transport", "dcqcn"
    )


def alone() -> Planted:
    """A job that has the network to itself."""
    return Planted(_trial(J1))


def apart() -> Planted:
    """Two jobs whose flows ECMP sends over two spines."""
    return Planted(_trial(APART, topology="leaf-spine-2x2", routing={"name": "ecmp", "seed": 1}))


def interleaved() -> Planted:
    """Two jobs on one link that send while the other computes."""
    jobs = {name: {**job, "profile": "short", "jitter": 0.001} for name, job in APART.items()}
    jobs["j2"]["start_offset_ms"] = 5.0
    return Planted(_trial(jobs))


def light_traffic() -> Planted:
    """Cross traffic that leaves enough of the link."""
    iperf = {"kind": "iperf", "from": "s1", "to": ["s3"], "load_gbps": 2, "transport": {"name": "dcqcn"}}
    return Planted(_trial(J1, cross_traffic={"iperf": iperf}))


def slow_worker_beside(other: Callable[[], Planted]) -> Planted:
    """Another cause, and a worker that computes 1.5 times as long as the profile says."""
    return replace(other(), slowed=1.5)


def equal_jobs(count: int) -> Planted:
    """Equal jobs, two hosts each, on one link."""
    jobs = {f"j{place}": {"workers": [f"s{place}", f"s{place + count}"]} for place in range(count)}
    return Planted(_trial(jobs, topology=f"dumbbell-{count}x{count}"), "job")


CAUSES = (
    neighbor,
    cross_traffic,
    one_path,
    slow_worker,
    slow_job,
    slow_link,
    lossy_link,
    paced_sender,
    slow_recovery,
    marking_off,
)
HARMLESS = (alone, apart, interleaved, light_traffic)
