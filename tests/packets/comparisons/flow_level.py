# SPDX-License-Identifier: Apache-2.0
"""Trials whose queues do not matter, in the packet-level model and in the flow-level one.

    python -m tests.packets.comparisons.flow_level

prints the most by which iterations of fixed cases differ (docs/results/packet-level.md).
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from roundabout.models.fluid import ResidualCapacity, capacities
from roundabout.models.packets import PS_PER_MS, Fabric, play_trial
from roundabout.spec import TrialSpec
from roundabout.spec.cassini import Timetable
from roundabout.spec.patterns import PATTERNS
from roundabout.testbeds.fluid.engine_trial import compute_trial
from tests.trials import build_trial
from tests.two_phases import two_phases

RATE = 43e9 / 8
TRANSPORTS = ("dcqcn", "mltcp_dcqcn", "reno", "cubic", "dctcp", "mltcp_dctcp")
DISJOINT = {
    "dumbbell-4x4": (("s0", "s1"), ("s2", "s3"), ("s4", "s5"), ("s6", "s7")),
    "chain-2-2-2": (("s0", "s1"), ("s2", "s3"), ("s4", "s5")),
    "dumbbell-3x3": (("s0", "s1"), ("s2", "s5")),
}
"""Workers of jobs that share no direction of a link."""


def build(topology: str, jobs: dict[str, Any], profiles: dict[str, Any], transport: str, **fields: Any) -> TrialSpec:
    jobs = {name: {"jitter": 0, **job} for name, job in jobs.items()}
    own = {"topology": topology, "profiles": profiles, "jobs": jobs, "transport": {"name": transport}, "queue": "auto"}
    return build_trial(**{"iterations": 4, **own, **fields})


def profile(pattern: str, size: int, share: float, compute_ms: float) -> dict[str, Any]:
    """A job that requires at most `share` of a link, whichever links its transfers have in common."""
    return two_phases(compute_ms, size, size / RATE * 1e3 / share, pattern=pattern)


def differences_ms(spec: TrialSpec, names: tuple[str, ...] = (), seed: int = 1) -> list[tuple[float, float]]:
    """Return each iteration's length in the flow-level model, and by how much longer it is packet by packet."""
    free = ResidualCapacity.constant(capacities(spec.topology))
    flows, packets = compute_trial(spec, free), play_trial(spec, seed, Fabric(), 1.0)
    found = []
    for name in names or tuple(spec.jobs):
        for row, each in zip(flows.iterations[name][0], packets.iterations[name][0], strict=True):
            whole_ms = row[2] - row[0]
            found.append((whole_ms, float(each["end_ps"] - each["start_ps"]) / PS_PER_MS - whole_ms))
    return found


def build_timed(count: int, size: int, share: float, transport: str) -> TrialSpec:
    """Return jobs on one link whose timetables give each a part of a period, a twentieth longer than it sends."""
    part_ms = 1.05 * size / RATE * 1e3 / share + 0.5
    profiles = {"p": profile("ring", size, share, part_ms * (count - 1))}
    jobs = {f"j{k}": {"profile": "p", "workers": [f"s{k}", f"s{k + 3}"], "flows": 2} for k in range(count)}
    timetables = {
        name: {"shift_ms": part_ms * k, "period_ms": part_ms * count, "threshold_ms": 0.02 * part_ms}
        for k, name in enumerate(jobs)
    }
    spec = build("dumbbell-3x3", jobs, profiles, transport, cassini={"timetables": timetables})
    timed = {
        name: job.model_copy(update={"timetable": Timetable.model_validate(timetables[name])})
        for name, job in spec.jobs.items()
    }
    return spec.model_copy(update={"jobs": timed})


def build_ranked(sizes: tuple[int, int], shares: tuple[float, float], compute_ms: tuple[float, float]) -> TrialSpec:
    """Return a job `a` of the higher and a job `b` of the lower priority on one link, over DCQCN."""
    drawn = zip("ab", sizes, shares, compute_ms, strict=True)
    profiles = {name: profile("ring", size, share, ms) for name, size, share, ms in drawn}
    jobs = {
        "a": {"profile": "a", "workers": ["s0", "s3"], "priority": 2},
        "b": {"profile": "b", "workers": ["s1", "s4"], "priority": 1},
    }
    return build("dumbbell-3x3", jobs, profiles, "dcqcn")


def fixed_cases(transport: str) -> Iterator[tuple[str, TrialSpec, tuple[str, ...]]]:
    """Yield the cases of docs/results/packet-level.md: what they are, the trial, and whose iterations count."""
    for pattern in sorted(PATTERNS):
        for flows in (1, 4):
            jobs = {"a": {"profile": "p", "workers": ["s0", "s2", "s4", "s5"], "flows": flows}}
            yield "alone", build("chain-2-2-2", jobs, {"p": profile(pattern, 2_000_000, 0.9 / 16, 1)}, transport), ()
    for topology, pairs in DISJOINT.items():
        jobs = {f"j{k}": {"profile": f"p{k}", "workers": list(pair), "flows": 2} for k, pair in enumerate(pairs)}
        shares = zip(jobs, (0.95, 0.65, 0.35, 0.3), strict=False)
        profiles = {f"p{name[1:]}": profile("ring", 3_000_000, share, 1) for name, share in shares}
        yield "disjoint", build(topology, jobs, profiles, transport), ()
    for count in (2, 3):
        for share in (0.3, 0.7, 0.95):
            yield "timetables", build_timed(count, 3_000_000, share, transport), ()
    if transport == "dcqcn":
        for share in (0.2, 0.5, 0.8, 0.95):
            for other in (0.2, 0.5, 0.8, 0.95):
                spec = build_ranked((3_000_000, 3_000_000), (share, other), (1, 0.7))
                yield "higher priority", spec, ("a",)
                yield "lower priority", spec, ("b",)


def main() -> None:
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for transport in TRANSPORTS:
        for name, spec, jobs in fixed_cases(transport):
            kind = "RoCE" if transport.endswith("dcqcn") else "TCP"
            found[name, kind].extend(later_ms for _, later_ms in differences_ms(spec, jobs))
    for (name, kind), later_ms in found.items():
        print(f"{name:16} {kind:5}{len(later_ms):5} iterations{min(later_ms):9.4f} to{max(later_ms):8.4f} ms longer")


if __name__ == "__main__":
    main()
