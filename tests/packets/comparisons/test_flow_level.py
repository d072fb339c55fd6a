# SPDX-License-Identifier: Apache-2.0
"""The packet-level model beside the flow-level one where queues do not matter: iterations take the same time.

What packets add: a message's last packet crosses one link after the other, and its ACK comes back. On at most four
links that is some 6 us (cables and switches 0.6 us a link, a packet 0.3 us), and a ring's or an all-to-all's bytes wait
for a packet at the ports that they share. A TCP window begins anew in each iteration with ten segments, and is written
64 KiB at a time: up to ten round trips of 10 us. Headers cost nothing here, as a payload takes its time at the payload
rate in both models.
"""

import pytest
from hypothesis import given, settings, strategies as st

from roundabout.spec import TrialSpec
from roundabout.spec.patterns import PATTERNS
from tests.packets.comparisons.flow_level import (
    DISJOINT,
    TRANSPORTS,
    build,
    build_ranked,
    build_timed,
    differences_ms,
    profile,
)

pytestmark = pytest.mark.unit

ROCE_MS, TCP_MS = 0.015, 0.25
"""How much longer an iteration may be packet by packet. Fixed cases have 0.012 and 0.178 ms at most."""
EARLY_MS = 0.05
"""How much shorter: 0.005 at most in those cases. A job that waits for its timetable waits from a later begin on."""


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
    # A pattern's transfers may share a link: a job requires no more than one link carries of all of them.
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
@given(st.integers(2, 3), SIZES, SHARES, st.sampled_from(TRANSPORTS))
def test_jobs_by_timetables_that_keep_them_apart_take_as_long(
    count: int, size: int, share: float, transport: str
) -> None:
    assert_alike(build_timed(count, size, share, transport))


@settings(max_examples=10, deadline=None)
@given(st.tuples(SIZES, SIZES), st.tuples(SHARES, SHARES), st.tuples(COMPUTE_MS, COMPUTE_MS))
def test_the_job_of_the_higher_priority_takes_as_long_as_alone(
    sizes: tuple[int, int], shares: tuple[float, float], compute_ms: tuple[float, float]
) -> None:
    assert_alike(build_ranked(sizes, shares, compute_ms), ("a",))
