# SPDX-License-Identifier: Apache-2.0
"""Traces played against the engine: what becomes of jobs that come, are moved, resized, and end."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

from roundabout.models.cluster.cassini import PlacementDecision
from roundabout.models.cluster.simulator import Cluster, simulate_dedicated, simulate_trace
from roundabout.models.cluster.state import Placement, Request, State
from roundabout.models.cluster.timeline import Allocation, Decision, Timeline
from roundabout.models.fluid import engine
from roundabout.models.native_engine import EngineError
from roundabout.models.schedulers import make_scheduler
from roundabout.plan.clusters import check_cluster_trial
from roundabout.spec import Topology, load_experiment
from roundabout.spec.cassini import Timetable
from tests.schedulers.clusters import KNOWN, cluster, employed, with_links_of

pytestmark = pytest.mark.unit

TOPOLOGY = cluster(racks=2, hosts=3)
NARROW = with_links_of(TOPOLOGY, 43.0)
A = Request("a", "vgg", 8, 2, 100, 0.0)
B = Request("b", "bert", 8, 2, 100, 0.0)
MOVE_S = 5.0
Plan = Callable[[float], tuple[Mapping[str, Placement], Mapping[str, Timetable]]]


class Planned:
    """Places by the clock, and is called at the instants given."""

    dedicated = False

    def __init__(self, *requested_s: float) -> None:
        self.requested_s = requested_s

    def decide(self, state: State, seed: int) -> list[Mapping[str, Placement]]:
        return [{}]

    def lease_s(self, state: State, job: object) -> None:
        """None."""

    def next_s(self, state: State) -> float | None:
        return next((at for at in self.requested_s if at > state.now_s + 1e-6), None)


def played(requests: list[Request], plan: Plan, *requested_s: float) -> Timeline:
    def decide(state: State, seed: int) -> PlacementDecision:
        placements, timetables = plan(state.now_s + 1e-6)
        here = {job.request.name for job in state.jobs}
        return PlacementDecision({name: each for name, each in placements.items() if name in here}, timetables, ())

    resolve_job = partial(employed, {each.name: each for each in requests})
    return simulate_trace(
        requests, Cluster(TOPOLOGY, Planned(*requested_s), KNOWN, decide, resolve_job, MOVE_S, seed=1)
    )


def test_a_job_alone_takes_its_dedicated_time() -> None:
    timeline = played([A], lambda _: ({"a": ("s0", "s1")}, {}))
    (allocation,) = timeline.allocations
    (life,) = timeline.histories
    assert (allocation.name, allocation.iterations, life.moves) == ("a.1", 100, 0)
    assert life.ended_s == pytest.approx(life.dedicated_s) == pytest.approx(allocation.ends_s)
    assert [each.why for each in timeline.decisions] == ["arrival", "end"]


def test_a_move_costs_time_and_the_iteration_under_way() -> None:
    timeline = played([A], lambda now_s: ({"a": ("s0", "s1") if now_s < 10.1 else ("s0", "s3")}, {}), 10.1)
    before, after = timeline.allocations
    assert (before.ends_s, after.begins_s) == pytest.approx((10.1, 10.1 + MOVE_S))
    assert before.iterations + after.iterations == 100
    assert timeline.histories[0].moves == 1


def test_a_job_that_grows_keeps_its_remaining_examples() -> None:
    hosts = "s0", "s1", "s2", "s3"
    timeline = played([A], lambda now_s: ({"a": hosts[:2] if now_s < 10.1 else hosts}, {}), 10.1)
    before, after = timeline.allocations
    assert before.iterations + 2 * after.iterations == pytest.approx(100, abs=1)


def test_a_new_timetable_does_not_interrupt_a_job() -> None:
    table = Timetable(shift_ms=50, period_ms=500, threshold_ms=5)
    timeline = played([A], lambda now_s: ({"a": ("s0", "s1")}, {"a": table} if now_s > 10 else {}), 10.0)
    before, after = timeline.allocations
    assert before.ends_s == after.begins_s == pytest.approx(10.0)
    assert (before.timetable, after.timetable, timeline.histories[0].moves) == (None, table, 0)
    assert before.iterations + after.iterations == 100


def test_a_new_priority_does_not_interrupt_a_job() -> None:
    timeline = prioritized(lambda now_s: {"a": 1, "b": 2} if now_s < 10 else {"a": 2, "b": 1})
    a, b = ([allocation for allocation in timeline.allocations if allocation.job == job] for job in "ab")
    assert [allocation.priority for allocation in a] == [1, 2]
    assert a[0].ends_s == a[1].begins_s == pytest.approx(10.0)
    assert (timeline.histories[0].moves, sum(allocation.iterations for allocation in a)) == (0, 100)
    alone_ms = KNOWN.profile(B, 2).alone_ms
    assert b[0].iterations == int(10_000 / alone_ms)
    assert b[1].iterations < (a[1].ends_s - 10.0) * 1000 / alone_ms - 5


def prioritized(priorities: Callable[[float], Mapping[str, int]]) -> Timeline:
    """Two jobs that share the uplinks of two racks, with priorities that change at 10 s."""
    requests = [A, B]
    placements = {"a": ("s0", "s3"), "b": ("s1", "s4")}

    def decide(state: State, seed: int) -> PlacementDecision:
        here = {job.request.name for job in state.jobs}
        found = {job: each for job, each in priorities(state.now_s + 1e-6).items() if job in here}
        return PlacementDecision({job: placements[job] for job in found}, {}, (), priorities=found)

    resolve_job = partial(employed, {each.name: each for each in requests})
    return simulate_trace(requests, Cluster(NARROW, Planned(10.0), KNOWN, decide, resolve_job, MOVE_S, seed=1))


def test_jobs_that_are_present_keep_their_gpus_and_their_lease() -> None:
    requests = [A, replace(A, name="b", workers=4, iterations=50, arrives_s=1.0)]
    themis = make_scheduler("themis", KNOWN)

    def decide(state: State, seed: int) -> PlacementDecision:
        assert {job.request.name: job.lease_s for job in state.jobs if job.placement}.get("a", 600.0) == 600.0
        return PlacementDecision(themis.decide(state, seed)[0], {}, ())

    resolve_job = partial(employed, {each.name: each for each in requests})
    own = Cluster(TOPOLOGY, themis, KNOWN, decide, resolve_job, MOVE_S, seed=1, present={"a": ("s1", "s4")})
    timeline = simulate_trace(requests, own)
    (allocation,) = [each for each in timeline.allocations if each.job == "a"]
    assert (allocation.workers, allocation.begins_s, timeline.histories[0].moves) == (("s1", "s4"), 0.0, 0)
    assert {host for each in timeline.allocations if each.job == "b" for host in each.workers} <= {
        "s0",
        "s2",
        "s3",
        "s5",
    }


def test_a_migrated_job_stands_still_and_keeps_its_lease() -> None:
    def decide(state: State, seed: int) -> PlacementDecision:
        leases_s.append(state.jobs[0].lease_s if state.jobs else None)
        resumes_s.append(state.jobs[0].resumes_s if state.jobs else None)
        is_late = state.now_s > 10
        hosts = ("s0", "s1") if is_late else ("s0", "s3")
        return PlacementDecision({"a": hosts} if state.jobs else {}, {}, (), ("a",) if is_late and state.jobs else ())

    leases_s: list[float | None] = []
    resumes_s: list[float | None] = []
    themis = make_scheduler("themis", KNOWN, epoch_min=0.05)
    resolve_job = partial(employed, {"a": A})
    timeline = simulate_trace([A], Cluster(TOPOLOGY, themis, KNOWN, decide, resolve_job, MOVE_S, seed=1))
    assert leases_s[:6] == [None, *[600.0] * 5]  # at 0, 3, 6, 9, 12 and 15 s
    assert resumes_s[:7] == [*[None] * 5, pytest.approx(12.0 + MOVE_S), None]
    before, after = timeline.allocations
    assert (before.ends_s, after.begins_s) == pytest.approx((12.0, 12.0 + MOVE_S))
    assert [each.migrated for each in timeline.decisions[:5]] == [(), (), (), (), ("a",)]


def test_the_order_of_workers_alone_is_no_move() -> None:
    timeline = played([A], lambda now_s: ({"a": ("s0", "s1") if now_s < 5 else ("s1", "s0")}, {}), 5.0)
    assert [allocation.workers for allocation in timeline.allocations] == [("s0", "s1")]


@given(st.lists(st.dictionaries(st.sampled_from("abcd"), st.sampled_from([("s0",), ("s1", "s2"), ("s2", "s1")]))))
def test_the_stored_changes_give_the_placements_of_each_decision(placements: list[dict[str, Placement]]) -> None:
    decisions = tuple(Decision(float(number), "epoch", None, each) for number, each in enumerate(placements))
    stored = Timeline((), (), decisions, ()).as_json("random", cassini=False)["decisions"]
    placed: dict[str, Placement] = {}
    for each, change in zip(placements, (own["placements"] for own in stored), strict=True):
        assert all(placed.get(job, ()) != workers for job, workers in change.items())
        placed = {job: workers for job, workers in (placed | change).items() if workers}
        assert placed == each


def test_a_job_that_is_never_placed_waits_forever() -> None:
    timeline = played([A], lambda _: ({}, {}))
    assert (timeline.allocations, timeline.histories[0].started_s, timeline.histories[0].ended_s) == ((), None, None)


def test_a_window_begins_with_an_iteration_and_keeps_timetables() -> None:
    table = Timetable(shift_ms=0, period_ms=1000, threshold_ms=5)
    whole = played([A], lambda _: ({"a": ("s0", "s1")}, {"a": table}))
    (allocation,) = whole.window(10.5, 20.0, lambda _: [float(second) for second in range(100)]).allocations
    assert (allocation.begins_s, allocation.ends_s) == pytest.approx((0.5, 20.0))
    assert allocation.timetable == replace_shift(table, 500)


def replace_shift(table: Timetable, shift_ms: float) -> Timetable:
    return table.model_copy(update={"shift_ms": shift_ms})


def scheduled(name: str, requests: list[Request], topology: Topology = TOPOLOGY) -> Timeline:
    scheduler = make_scheduler(name, KNOWN)

    def decide(state: State, seed: int) -> PlacementDecision:
        return PlacementDecision(scheduler.decide(state, seed)[0], {}, ())

    resolve_job = partial(employed, {each.name: each for each in requests})
    own = Cluster(topology, scheduler, KNOWN, decide, resolve_job, MOVE_S, seed=1)
    return simulate_dedicated(requests, own) if scheduler.dedicated else simulate_trace(requests, own)


REQUEST = st.builds(
    Request,
    name=st.just(""),
    model=st.sampled_from(["vgg", "bert", "resnet"]),
    batch=st.just(8),
    workers=st.integers(1, 6),
    iterations=st.integers(1, 300),
    arrives_s=st.floats(0, 60),
)


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(["random", "themis"]), st.lists(REQUEST, min_size=1, max_size=6))
def test_every_job_ends_and_no_gpu_has_two(name: str, drawn: list[Request]) -> None:
    ordered = sorted(drawn, key=lambda each: each.arrives_s)
    requests = [replace(each, name=f"j{place}") for place, each in enumerate(ordered)]
    timeline = scheduled(name, requests)
    for request, life in zip(requests, timeline.histories, strict=True):
        allocations = [allocation for allocation in timeline.allocations if allocation.job == request.name]
        done = sum(allocation.iterations * len(allocation.workers) for allocation in allocations)
        assert life.ended_s is not None
        assert done >= request.iterations * request.workers
        assert all(one.ends_s <= other.begins_s for one, other in pairwise(allocations))
    for allocation in timeline.allocations:
        beside = [
            other
            for other in timeline.allocations
            if other is not allocation
            and other.begins_s < allocation.ends_s - 1e-6
            and allocation.begins_s < other.ends_s - 1e-6
        ]
        assert not any(set(other.workers) & set(allocation.workers) for other in beside)
    assert scheduled(name, requests) == timeline


def test_in_clusters_of_their_own_nobody_meets() -> None:
    timeline = scheduled("ideal", [A, replace(A, name="b", arrives_s=1.0)])
    one, other = timeline.allocations
    assert one.ends_s == other.begins_s
    assert [(life.started_s, life.ended_s) for life in timeline.histories] == [
        (at_s, pytest.approx(at_s + timeline.histories[0].dedicated_s)) for at_s in (0.0, 1.0)
    ]


def test_an_allocation_that_ends_before_its_first_turn_sends_nothing():
    turns = Timetable(shift_ms=500.0, period_ms=1000.0, threshold_ms=50.0)
    allocation = Allocation(
        "a.1", "a", begins_s=2.0, ends_s=2.4, workers=("s0", "s1"), left=9, iterations=0, timetable=turns
    )
    assert not allocation.has_traffic
    assert replace(allocation, ends_s=2.6).has_traffic
    assert replace(allocation, timetable=None).has_traffic
    assert not replace(allocation, timetable=None, workers=("s0",)).has_traffic


def test_without_its_engine_no_cluster_is_begun(monkeypatch):
    experiment = load_experiment("cluster-dynamic", length="quick")
    monkeypatch.setattr(engine, "LIBRARY", "build/lib/none.so")
    with pytest.raises(EngineError, match=r"not built: build/lib/none\.so"):
        check_cluster_trial(experiment.cells[0].spec, 1)
