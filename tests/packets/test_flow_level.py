# SPDX-License-Identifier: Apache-2.0
"""The packet-level model beside the flow-level one where queues do not matter: iterations take the same time.

What packets add: a message's last packet crosses one link after the other, and its ACK comes back. On at most four
links that is some 6 us (cables and switches 0.6 us a link, a packet 0.3 us), and a ring's or an all-to-all's bytes wait
for a packet at the ports that they share. A TCP window begins anew in each iteration with ten segments, and is written
64 KiB at a time: up to ten round trips of 10 us. Headers cost nothing here, as a payload takes its time at the payload
rate in both models.
"""

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from roundabout import build_experiment
from roundabout.models.fluid import ResidualCapacity, capacities
from roundabout.models.packets import PS_PER_MS, Fabric, play_trial
from roundabout.spec import TrialSpec
from roundabout.spec.cassini import Timetable
from roundabout.spec.patterns import PATTERNS
from roundabout.testbeds.fluid.engine_trial import compute_trial

pytestmark = pytest.mark.unit

RATE = 43e9 / 8
ROCE_MS, TCP_MS = 0.015, 0.25
"""How much longer an iteration may be packet by packet: twice the most of 560 iterations of fixed cases (see above)."""
EARLY_MS = 1e-3
"""How much shorter: the flow-level engine places events to 1e-6 ms, and packets of a phase are whole."""
TRANSPORTS = ("dcqcn", "mltcp_dcqcn", "reno", "cubic", "dctcp", "mltcp_dctcp")
DISJOINT = {
    "dumbbell-4x4": (("s0", "s1"), ("s2", "s3"), ("s4", "s5"), ("s6", "s7")),
    "chain-2-2-2": (("s0", "s1"), ("s2", "s3"), ("s4", "s5")),
    "dumbbell-3x3": (("s0", "s1"), ("s2", "s5")),
}
"""Workers of jobs that share no direction of a link."""


def build(topology: str, jobs: dict[str, Any], profiles: dict[str, Any], transport: str, **fields: Any) -> TrialSpec:
    file = {"schema": 1, "name": "beside", "about": "Jobs whose queues do not matter", "topology": topology}
    jobs = {name: {"jitter": 0, **job} for name, job in jobs.items()}
    document = {**file, "profiles": profiles, "jobs": jobs, "transport": {"name": transport}, "queue": "auto"}
    return build_experiment({"iterations": 4, **document, **fields}).cells[0].spec


def profile(pattern: str, size: int, share: float, compute_ms: float) -> dict[str, Any]:
    """A job that asks for at most `share` of a link, whichever links its transfers have in common."""
    send = {"name": "send", "bytes": size, "alone_ms": size / RATE * 1e3 / share, "pattern": pattern, "guess": "any"}
    return {"model": "any", "phases": [{"name": "compute", "compute_ms": compute_ms, "guess": "any"}, send]}


def differences_ms(spec: TrialSpec, names: tuple[str, ...] = ()) -> list[tuple[float, float]]:
    """Return each iteration's length in the flow-level model, and by how much longer it is packet by packet."""
    free = ResidualCapacity.constant(capacities(spec.topology.links))
    flows, packets = compute_trial(spec, free), play_trial(spec, 1, Fabric(), 1.0)
    found = []
    for name in names or tuple(spec.jobs):
        for row, each in zip(flows.iterations[name][0], packets.iterations[name][0], strict=True):
            whole_ms = row[2] - row[0]
            found.append((whole_ms, float(each["end"] - each["start"]) / PS_PER_MS - whole_ms))
    return found


def assert_alike(spec: TrialSpec, names: tuple[str, ...] = ()) -> None:
    tcp = not next(iter(spec.jobs.values())).transport.name.endswith("dcqcn")
    for whole_ms, later_ms in differences_ms(spec, names):
        assert -EARLY_MS < later_ms < (TCP_MS if tcp else ROCE_MS), f"of {whole_ms} ms"


SIZES = st.integers(500_000, 4_000_000)
SHARES = st.floats(0.05, 0.95)
COMPUTE_MS = st.floats(0.2, 3)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(sorted(PATTERNS)), st.data())
def test_a_job_alone_takes_as_long(pattern: str, data: st.DataObject) -> None:
    topology = data.draw(st.sampled_from(sorted(DISJOINT)))
    hosts = sorted({host for pair in DISJOINT[topology] for host in pair})
    workers = data.draw(st.permutations(hosts))[: data.draw(st.sampled_from([2, 4]))]  # one pattern sends in pairs
    # A pattern's transfers may share a link: a job asks for no more than one link carries of all of them.
    share = data.draw(SHARES) / len(workers) ** 2
    profiles = {"p": profile(pattern, data.draw(SIZES), share, data.draw(COMPUTE_MS))}
    jobs = {"a": {"profile": "p", "workers": workers, "flows": data.draw(st.integers(1, 4))}}
    assert_alike(build(topology, jobs, profiles, data.draw(st.sampled_from(TRANSPORTS))))


@settings(max_examples=15, deadline=None)
@given(st.sampled_from(sorted(DISJOINT)), st.sampled_from(TRANSPORTS), st.data())
def test_jobs_on_links_of_their_own_take_as_long(topology: str, transport: str, data: st.DataObject) -> None:
    jobs, profiles = {}, {}
    for number, pair in enumerate(DISJOINT[topology]):
        profiles[f"p{number}"] = profile("ring", data.draw(SIZES), data.draw(SHARES), data.draw(COMPUTE_MS))
        jobs[f"j{number}"] = {"profile": f"p{number}", "workers": list(pair), "flows": data.draw(st.integers(1, 4))}
    assert_alike(build(topology, jobs, profiles, transport))


@settings(max_examples=15, deadline=None)
@given(st.integers(2, 3), st.sampled_from(TRANSPORTS), st.data())
def test_jobs_by_timetables_that_keep_them_apart_take_as_long(count: int, transport: str, data: st.DataObject) -> None:
    # Each job's phase has its own part of a period in which it sends alone, with a margin of a twentieth.
    size, share = data.draw(SIZES), data.draw(SHARES)
    sends_ms = size / RATE * 1e3 / share
    part_ms = 1.05 * sends_ms + 0.5
    profiles = {"p": profile("ring", size, share, part_ms * (count - 1))}
    jobs = {f"j{k}": {"profile": "p", "workers": [f"s{k}", f"s{k + 3}"], "flows": 2} for k in range(count)}
    period_ms = part_ms * count
    timetables = {
        name: {"shift_ms": part_ms * k, "period_ms": period_ms, "threshold_ms": 0.02 * part_ms}
        for k, name in enumerate(jobs)
    }
    spec = build("dumbbell-3x3", jobs, profiles, transport, cassini={"timetables": timetables})
    timed = {
        name: job.model_copy(update={"timetable": Timetable.model_validate(timetables[name])})
        for name, job in spec.jobs.items()
    }
    assert_alike(spec.model_copy(update={"jobs": timed}))


@settings(max_examples=10, deadline=None)
@given(st.data())
def test_the_job_of_the_higher_priority_takes_as_long_as_alone(data: st.DataObject) -> None:
    profiles = {name: profile("ring", data.draw(SIZES), data.draw(SHARES), data.draw(COMPUTE_MS)) for name in "ab"}
    jobs = {
        "a": {"profile": "a", "workers": ["s0", "s3"], "priority": 2},
        "b": {"profile": "b", "workers": ["s1", "s4"], "priority": 1},
    }
    assert_alike(build("dumbbell-3x3", jobs, profiles, "dcqcn"), ("a",))
