# SPDX-License-Identifier: Apache-2.0
"""Of a scheduler's candidates the most compatible is taken, and its jobs are shifted."""

import numpy as np
import pytest

from roundabout.models.cassini import Arc, Circle
from roundabout.models.cluster.cassini import PlacementScore, RankingRules, decide_with_cassini
from roundabout.models.cluster.demands import DemandFinder, random_score
from roundabout.models.cluster.placement import host_tree_of
from roundabout.models.cluster.state import Job, JobKnowledge, Request, State
from roundabout.models.cluster.timetable_fit import mean_slowdown
from roundabout.spec import Profile
from roundabout.spec.profile import Phase
from tests.schedulers.made_up_offers import KNOWN, TREE, Offers

pytestmark = pytest.mark.unit


def decide(models, *offered, rank="algorithm-2"):
    jobs = tuple(Job(Request(job, model, 8, 2, 500, 0.0)) for job, model in models.items())
    return decide_with_cassini(Offers(*offered), State(0.0, TREE, jobs), 1, KNOWN, RankingRules(rank))


def test_jobs_that_fit_are_put_together_and_shifted():
    models = {"a": "half", "b": "half", "c": "full"}
    bad = {"a": "s0 s3", "c": "s1 s4", "b": "s6 s7"}
    good = {"a": "s0 s3", "b": "s1 s4", "c": "s6 s7"}
    decided = decide(models, bad, good)
    assert decided.placements["b"] == ("s1", "s4")
    assert decided.scores == pytest.approx((0.6, 1.0), abs=0.01)  # of ten tenths, four have both
    a, b = (decided.timetables[job] for job in "ab")
    assert decided.timetables.keys() == {"a", "b"}
    assert a.period_ms == b.period_ms == pytest.approx(202)
    assert abs(a.shift_ms - b.shift_ms) == pytest.approx(101, abs=4)


def test_the_schedulers_own_choice_goes_before_what_is_as_good():
    apart = {"a": "s0 s1", "b": "s3 s4"}
    decided = decide({"a": "half", "b": "half"}, apart, {"a": "s3 s4", "b": "s0 s1"})
    assert decided.placements["a"] == ("s0", "s1")
    assert decided.scores == (1.0, 1.0)
    assert decided.timetables == {}


def test_two_racks_that_the_same_jobs_share_are_no_loop():
    decided = decide({"a": "half", "b": "half"}, {"a": "s0 s3", "b": "s1 s4"})
    assert decided.scores == (1.0,)
    assert decided.timetables.keys() == {"a", "b"}


LOOP = {"a": "s0 s3", "b": "s4 s6", "c": "s7 s1"}


def test_loops_are_left_out():
    models = dict.fromkeys("abc", "half")
    decided = decide(models, LOOP, {"a": "s0 s3", "b": "s1 s4", "c": "s6 s7"})
    assert decided.scores == (None, 1.0)
    assert decided.placements["b"] == ("s1", "s4")


def test_if_all_placements_have_loops_one_link_gets_no_shifts():
    """Three jobs, each of which meets both others: two links can have their time-shifts, not three."""
    requests = {job: Request(job, "half", 8, 2, 500, 0.0) for job in "abc"}
    placements = {job: tuple(hosts.split()) for job, hosts in LOOP.items()}
    found = PlacementScore(DemandFinder(host_tree_of(TREE), requests, KNOWN).shared_links(placements))
    assert found.loops
    assert [len(part) for part in found.parts] == [2]


def test_shifts_that_cost_more_on_another_link_are_not_enforced():
    """Two of them would always meet a third, and miss their turns for it."""
    decided = decide(dict.fromkeys("abc", "half"), LOOP)
    assert decided.scores == (None,)
    assert decided.placements.keys() == {"a", "b", "c"}
    assert decided.timetables == {}


def test_jobs_that_still_share_a_link_keep_their_timetables():
    models = {"a": "half", "b": "half", "c": "half", "d": "half"}
    before = decide({job: models[job] for job in "ab"}, {"a": "s0 s3", "b": "s1 s4"})
    after = decide(models, {"a": "s0 s3", "b": "s1 s4", "c": "s6 s9", "d": "s7 s10"})
    assert {job: after.timetables[job] for job in "ab"} == before.timetables
    assert after.timetables.keys() == set(models)


def test_jobs_that_fit_on_no_circle_count_by_chance_and_are_not_shifted():
    models = {"a": "odd", "b": "wide", "c": "other"}
    together = {"a": "s0 s3", "b": "s1 s4", "c": "s2 s5"}
    fewer = {"a": "s0 s3", "b": "s6 s7", "c": "s2 s5"}
    decided = decide(models, together, fewer)
    assert decided.scores[0] < decided.scores[1] < 1
    assert decided.placements["b"] == ("s6", "s7")
    assert decide(models, together).timetables == {}


def test_compatible_jobs_that_run_faster_unshifted_are_not_shifted():
    """The best rotation leaves 0.84 of the link's demand, chance 0.80; but who is held misses turns."""
    decided = decide({"a": "few", "b": "many"}, {"a": "s0 s3", "b": "s1 s4"})
    assert decided.scores == (pytest.approx(0.84, abs=0.01),)
    assert decided.timetables == {}


def test_a_mild_link_hides_a_full_one_from_algorithm_2_alone():
    """Where a meets b, the link of c and d has room for 0.95 of their demand, which raises the mean over links."""
    models = {"a": "full", "b": "full", "c": "most", "d": "little"}
    full_and_mild = {"a": "s0 s3", "b": "s1 s4", "c": "s6 s9", "d": "s7 s10"}
    one_link = {"a": "s0 s3", "c": "s1 s4", "b": "s6 s7", "d": "s9 s10"}
    by_mean = decide(models, one_link, full_and_mild)
    assert (by_mean.scores, by_mean.placements["c"]) == (pytest.approx((0.3, 0.575), abs=0.02), ("s6", "s9"))
    worst = decide(models, one_link, full_and_mild, rank="worst-link")
    # At random phases the excess is 0.9 x 0.8 for a and c, 0.9 x 0.9 for a and b, and 0.8 x 0.25 for c and d.
    assert worst.scores == pytest.approx((1 - 2 * 0.72 / 4, 1 - (2 * 0.81 + 2 * 0.2) / 4), abs=0.01)
    assert worst.placements["c"] == ("s1", "s4")
    played = decide(models, one_link, full_and_mild, rank="played")
    assert 1 > played.scores[0] > played.scores[1] > 0.5
    assert played.placements["c"] == ("s1", "s4")


def test_a_loop_is_a_candidate_by_worst_links():
    models = dict.fromkeys("abc", "half")
    apart = {"a": "s0 s1", "b": "s3 s4", "c": "s6 s7"}
    decided = decide(models, LOOP, apart, rank="worst-link")
    assert decided.scores == (pytest.approx(0.75), 1.0)
    assert decide(models, LOOP, rank="worst-link").placements["a"] == ("s0", "s3")


def test_mean_slowdown_is_1_alone_and_more_on_a_full_link():
    two = tuple(Circle(name, 100.0, (Arc(0, 60, 40.0), Arc(80, 90, 20.0))) for name in "ab")
    assert mean_slowdown((((two[0],), 40.0),)) == pytest.approx(1.0)
    assert mean_slowdown(((two, 80.0),)) == pytest.approx(1.0)
    assert 1.2 < mean_slowdown(((two, 40.0),)) < 1.7  # both require 65 % of the link, of which they get 92


def test_chance_is_the_mean_over_all_phases():
    jobs = tuple(Circle(name, 100.0, (Arc(0, up, gbps),)) for name, up, gbps in (("a", 50, 40), ("b", 30, 30)))
    rng, at = np.random.default_rng(1), np.linspace(0, 100, 500, endpoint=False)
    drawn = [
        np.maximum(sum(job.demand_gbps((at + rng.uniform(0, 100)) % 100) for job in jobs) - 50, 0).mean()
        for _ in range(4000)
    ]
    assert random_score(jobs, 50.0) == pytest.approx(1 - np.mean(drawn) / 50, abs=0.005)
    assert random_score(jobs, 50.0) == pytest.approx(1 - 0.5 * 0.3 * 20 / 50)


def test_a_job_requires_all_that_it_sends_over_a_link():
    """Two of four workers are in each rack, and send a third of their bytes to each other one: 2 x 2/3 go out."""

    def all_to_all(model, workers, batch):
        send = Phase(name="send", bytes=10**8, alone_ms=80, pattern="all-to-all", guess="made up")
        return Profile(name=model, model=model, batch=batch, phases=(send,))

    requests = {job: Request(job, "m", 8, 4, 500, 0.0) for job in "ab"}
    demands = DemandFinder(host_tree_of(TREE), requests, JobKnowledge(all_to_all, lambda model: 1.0))
    placements = {"a": ("s0", "s1", "s3", "s4"), "b": ("s2", "s5", "s8", "s11")}
    found = {
        tuple((circle.job, round(circle.arcs[0].gbps, 2)) for circle in each)
        for each in demands.shared_links(placements)
    }
    assert found == {(("a", 13.33), ("b", 10.0))}
