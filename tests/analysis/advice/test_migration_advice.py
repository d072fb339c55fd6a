# SPDX-License-Identifier: Apache-2.0
"""`roundabout advise --migrate`: which workers to swap, what that gains, when it pays, and when to leave jobs alone."""

import json
from dataclasses import replace

import pyarrow.csv
import pytest
import yaml

from analysis.advice import migration_tables
from analysis.advice.errors import AdviceError
from analysis.advice.migration_advice import MigrationAdvice, SwapStep, advise_migration
from analysis.advice.observed_jobs import ObservedJob
from analysis.statistics.phases import Estimate
from roundabout.cli.main import main
from roundabout.models.cluster.swap_rule import FREE, Swap
from roundabout.spec import load_topology
from roundabout.spec.routing import Routing
from tests.analysis.advice import random_jobs
from tests.analysis.advice.long_tables import exactly, long_table
from tests.schedulers.made_up_offers import TREE

pytestmark = [pytest.mark.unit, pytest.mark.usefixtures("few_resamplings")]

HALF = exactly((100, 0.0), (100, 43.0))
MOVE_S = 30.0


def advice_for(placements, move_s=MOVE_S, **known):
    jobs = [replace(known.get(job, HALF), job=job) for job in placements]
    return advise_migration(jobs, {job: tuple(hosts.split()) for job, hosts in placements.items()}, TREE, move_s)


def test_two_jobs_that_cross_are_advised_to_swap_and_the_time_until_it_pays_is_given():
    """Both send for half of their time: at random phases they take 1 + 0.5^2 of the time alone."""
    found = advice_for({"a": "s0 s3", "b": "s1 s4"})
    (step,) = found.steps
    assert step.swap.fall == pytest.approx(2 * 0.25)
    assert found.cost["a"].value == pytest.approx(1.25, abs=0.12)
    assert step.gain.value == pytest.approx(found.cost["a"].value, rel=0.05)
    assert step.gain.low <= step.gain.value <= step.gain.high
    assert step.is_advised and found.advised == (step,)
    share = 1 / step.gain.value  # of what a job does alone
    lost = MOVE_S * share * (2 if step.swap.other_job else 1)
    assert step.break_even_s.value == pytest.approx(MOVE_S + lost / (2 * (1 - share)), rel=0.1)
    slower = advice_for({"a": "s0 s3", "b": "s1 s4"}, move_s=2 * MOVE_S).steps[0]
    assert slower.break_even_s.value == pytest.approx(2 * step.break_even_s.value)
    assert advice_for({"a": "s0 s3", "b": "s1 s4"}) == found


def test_jobs_that_meet_nowhere_stay():
    found = advice_for({"a": "s0 s1", "b": "s3 s4", "c": "s2"}, c=ObservedJob("c", reason="no period"))
    assert (found.steps, found.advised) == ((), ())
    assert found.why == "no swap lowers the excess on jobs' worst links by 0.10 or more"
    assert {job: round(cost.value, 2) for job, cost in found.cost.items()} == {"a": 1, "b": 1}


def test_a_job_whose_traffic_is_unknown_leaves_no_advice():
    found = advice_for({"a": "s0 s3", "b": "s1 s4"}, b=ObservedJob("b", reason="gaps and resets"))
    assert (found.steps, found.why) == ((), "no advice for b: gaps and resets")


def test_a_job_on_one_host_can_make_room():
    """All other hosts are busy, so c's silent worker changes places with one that crosses."""
    busy = {f"x{place}": f"s{place}" for place in range(6, 12)}
    silent = {name: ObservedJob(name, reason="sends nothing") for name in (*busy, "c", "d")}
    found = advice_for({"a": "s0 s3", "b": "s1 s4", "c": "s2", "d": "s5", **busy}, **silent)
    assert found.advised and found.steps[0].gain.value > 1.1


def test_impossible_placements_are_refused():
    with pytest.raises(AdviceError, match="job a: found host h9, expected one of s0"):
        advice_for({"a": "s0 h9"})
    with pytest.raises(AdviceError, match="host s0: found 2 jobs, expected one at most"):
        advice_for({"a": "s0 s3", "b": "s0 s4"})
    hashed = load_topology("cluster-24-48links").with_routing(Routing(name="ecmp"))
    with pytest.raises(AdviceError, match="found routing ecmp"):
        advise_migration([HALF], {"j1": ("s0", "s4")}, hashed, MOVE_S)


def step(gain, low, break_even_s=100.0, other_job="b"):
    even = break_even_s and Estimate(break_even_s, 80.0, 120.0)
    swap = Swap("a", "s0", other_job, "s4", 0.5)
    return SwapStep(swap, Estimate(gain, low, gain + 0.1), {"a": Estimate(gain, low, gain + 0.1)}, even)


@pytest.mark.parametrize(
    ("steps", "advised", "words"),
    [
        ([step(1.2, 1.1)], 1, ["move, if these jobs run for 120 s or more"]),
        ([step(1.2, 0.99)], 0, ["leave: it may gain nothing"]),
        ([step(1.015, 1.01)], 0, ["leave: it gains less than 1.02"]),
        ([step(1.2, 1.1, None)], 0, ["leave: the work that is lost may not come back"]),
        ([step(1.2, 1.1), step(1.15, 1.1)], 1, ["move, if", "leave: it gains no more than the swaps before"]),
        ([step(1.01, 1.005), step(1.3, 1.2)], 2, ["move, if", "move, if"]),
    ],
)
def test_a_swap_is_advised_only_where_it_surely_pays(steps, advised, words):
    found = MigrationAdvice(MOVE_S, {"a": Estimate(1.3, 1.2, 1.4)}, tuple(steps))
    assert len(found.advised) == advised
    rows = migration_tables.tables(found)[0].sections[0].rows
    assert all(word in str(row[-1].value) for row, word in zip(rows, words, strict=True))


def test_swaps_are_named_with_jobs_and_hosts():
    assert migration_tables.describe(step(1.2, 1.1).swap) == "a on s0 and b on s4"
    assert migration_tables.describe(step(1.2, 1.1, other_job=FREE).swap) == "a: s0 to s4, which is free"


def test_counters_a_map_of_jobs_and_a_topology_give_advice(tmp_path, capsys):
    vgg = random_jobs.Played(((110.0, None), random_jobs.send(45.0, 90.0)), 0.004)
    pyarrow.csv.write_csv(long_table(random_jobs.counters({"j1": vgg, "j2": vgg})), tmp_path / "bytes.csv")
    (tmp_path / "jobs.yaml").write_text("j1: [j1a, j1b]\nj2: [j2a, j2b]\n")
    hosts = dict(
        zip(TREE.hosts, ("j1a", "j2a", "x0", "j1b", "j2b", *(f"x{place}" for place in range(1, 8))), strict=True)
    )
    dumped = json.loads(TREE.model_dump_json(by_alias=True))
    dumped["hosts"] = list(hosts.values())
    for link in dumped["links"]:
        link["ends"] = [hosts.get(end, end) for end in link["ends"]]
    (tmp_path / "rack.yaml").write_text(yaml.safe_dump({"schema": 1, **dumped}))
    words = ["advise", str(tmp_path / "bytes.csv"), "--jobs", str(tmp_path / "jobs.yaml"), "--migrate"]
    words += ["--topology", str(tmp_path / "rack.yaml"), "--move", "60s"]
    assert main([*words, "--page", str(tmp_path / "page.html"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["move_s"] == 60 and said["advised_swaps"] == 1
    assert {said["swaps"][0]["job"], said["swaps"][0]["other_job"]} <= {"j1", "j2", None}
    assert said["swaps"][0]["gain"]["value"] > 1.1
    assert "Swaps, one after the other" in (tmp_path / "page.html").read_text()
    switches = "SwitchName=a Nodes=j1a,j2a,x0\nSwitchName=b Nodes=j1b,j2b,x1\nSwitchName=root Switches=a,b\n"
    (tmp_path / "topology.conf").write_text(switches)
    assert main([*words[:-3], str(tmp_path / "topology.conf"), *words[-2:], "--capacity", "50"]) == 0
    tables = " ".join(capsys.readouterr().out.split())
    assert "move, if" in tables and "neither rates nor numbers of cables" in tables


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("--topology cluster-24", "--topology: found no --migrate"),
        ("--move 3s", "--move: found no --migrate"),
        ("--migrate", "--migrate: found no --topology"),
        ("--migrate --topology cluster-24 --placements p.yaml", "found --placements or --check"),
    ],
)
def test_options_that_do_not_go_together_are_refused(words, found, capsys):
    assert main(["advise", "x.csv", *words.split()]) != 0
    assert found in " ".join(capsys.readouterr().err.split())
