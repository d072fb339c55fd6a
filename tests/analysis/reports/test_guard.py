# SPDX-License-Identifier: Apache-2.0
"""Rules that runs must keep: how they are written, when they are broken, and how often by chance."""

from xml.etree import ElementTree as ET

import numpy as np
import pytest

from analysis.reports.guard import ALPHA, QUANTITIES, judge_rules, junit, parse_rule
from analysis.statistics.one_sided_tests import correct_by_holm, p_value_of_excess
from roundabout.cli.main import main
from roundabout.core.errors import UsageError
from roundabout.models.fluid import fluid_jobs, residual_of_schedules
from roundabout.plan import make_plan
from roundabout.spec import load_experiment
from roundabout.testbeds.fluid.loads import plan_loads
from tests.computed_runs import RUNNER
from tests.fluid.oracle.model import Simulation

pytestmark = pytest.mark.unit

FOUND_BY = 14
"""Repetitions that find 3 % nine times in ten."""


@pytest.mark.parametrize("text", ["p99 > 5 %", "median<-3%", " mean >  0.5 % ", "p90 >= 5 %"])
def test_a_rule_is_a_quantity_a_side_and_per_cent(text):
    assert str(parse_rule(text)).replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize("text", ["p99 > 5", "p98 > 5 %", "p99 = 5 %", "p99 5 %", "", "mean > nan %", "mean < -100 %"])
def test_an_invalid_rule_is_refused_with_the_expected_form(text):
    with pytest.raises(UsageError, match=r"^--fail-if: found .*, expected"):
        parse_rule(text)


def test_p_values_are_corrected_by_holm():
    assert correct_by_holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert correct_by_holm([0.9, 0.6]) == [1.0, 1.0]


def test_excess_over_a_limit_is_significant_only_above_the_limit():
    quick, slow = [100.0, 101.0, 99.0, 100.0], [105.0, 106.0, 104.0, 105.0]
    assert p_value_of_excess(quick, slow, 1.03) < ALPHA
    assert p_value_of_excess(quick, slow, 1.05) > 0.3
    assert p_value_of_excess(slow, quick, 1.0) > 0.99
    assert p_value_of_excess([100.0] * 4, [104.0] * 4, 1.05) == 1.0


def test_the_guards_false_alarm_rate_is_at_most_alpha():
    generator = np.random.default_rng(7)
    drawn = generator.normal(100, 1, (2000, 6, 2, 5))  # comparisons of six figures, two runs of five repetitions
    alarms = sum(
        min(correct_by_holm([p_value_of_excess(*sides, 1.0) for sides in figures])) < ALPHA for figures in drawn
    )
    assert alarms / len(drawn) <= 0.017  # of so many, ALPHA and three standard errors


def test_a_slower_run_fails_a_rule_and_an_equal_run_none(run, make_run, tmp_path, capsys):
    slower = make_run("slow", slowdown=1.05)  # of computing: 2.5 % of an iteration alone
    judged = judge_rules([parse_rule("median > 1 %"), parse_rule("p99 > 1 %")], run, [slower])
    assert [each.verdict for each in judged if each.cell == "alone" and each.rule == "median > 1 %"] == ["fail"] * 2
    assert {each.verdict for each in judged if each.rule == "p99 > 1 %"} == {"inconclusive"}
    suite = ET.fromstring(junit(judged))
    assert len(suite) == len(judged) == int(suite.get("tests"))
    assert len(suite.findall("*/failure")) == int(suite.get("failures")) >= 2
    assert len(suite.findall("*/skipped")) == 6

    file = tmp_path / "rules.xml"
    broken = main(["compare", str(run.path), str(slower.path), "--fail-if", "median > 1 %", "--junit", str(file)])
    assert (broken, "median > 1 %: alone, j1: +2." in capsys.readouterr().err) == (3, True)
    assert ET.parse(file).getroot().get("failures") != "0"
    assert main(["compare", str(run.path), str(run.path), "--fail-if", "median > 1 %"]) == 0
    assert main(["compare", str(run.path), str(run.path), "--fail-if", "p99 > 1 %"]) == 3
    assert "p99 > 1 %: judged nowhere: " in capsys.readouterr().err


TWICE = """
name: twice
about: Two jobs that meet, computed
topology: dumbbell-2x2
profiles:
  made:
    model: made
    phases:
      - {name: work, compute_ms: COMPUTE, source: a test}
      - {name: send, bytes: 100_000_000, alone_ms: 20, source: a test}
profile: made
jobs: {j1: {workers: [s0, s2]}, j2: {workers: [s1, s3]}}
iterations: 10
transport: {name: dcqcn}
"""


@pytest.fixture(scope="module")
def computed_runs(tmp_path_factory):
    """Return two runs in the fluid model, the second of which computes for 3 % longer."""
    folder, found = tmp_path_factory.mktemp("computed"), []
    for compute_ms in (100, 103):
        path = folder / "twice.yaml"
        path.write_text(TWICE.replace("COMPUTE", str(compute_ms)))
        found.append(RUNNER.start(load_experiment(path), None, folder / str(compute_ms)))
    return found


@pytest.mark.parametrize(
    ("rule", "status"),
    [("median > 1 %", 3), ("p99 > 1 %", 3), ("mean < -1 %", 0), ("mean > 4 %", 0), ("mean < 4 %", 3), ("p90 > 0 %", 3)],
)
def test_a_computed_run_is_exact_and_judged_with_one_repetition(computed_runs, rule, status, capsys):
    one, other = computed_runs
    assert main(["compare", str(one.path), str(other.path), "--fail-if", rule]) == status
    assert main(["compare", str(one.path), str(one.path), "--fail-if", rule]) == (3 if "< 4" in rule else 0)
    assert "judged nowhere" not in capsys.readouterr().err


BESIDE_TRAFFIC = """
name: beside-traffic
about: Two jobs beside web-search traffic that is drawn anew in each repetition
topology: dumbbell-3x3
jobs: {j1: {profile: vgg19-fig1, workers: [s0, s3]}, j2: {profile: vgg16-fig3, workers: [s1, s4]}}
cross_traffic: {websearch: {kind: consistent, from: s2, to: [s5], load_gbps: 8}}
iterations: 20
transport: {name: dcqcn}
repetitions: 1000
"""


class Pace:
    """The fluid model's."""

    scale = dilation = 1.0

    def ms_on_host(self, paper_ms):
        return paper_ms

    def rate_on_host_bps(self, paper_gbps):
        return paper_gbps * 1e9


def computed(folder, repetitions):
    """Median, mean and p90 of each job's iterations in each repetition: shape (repetitions, jobs, quantities)."""
    path = folder / "beside-traffic.yaml"
    path.write_text(BESIDE_TRAFFIC)
    experiment = load_experiment(path).model_copy(update={"repetitions": repetitions})
    found = []
    for trial in make_plan(experiment, testbed_identity={}, artefacts={}).trials:
        schedules = {name: load.schedule for name, load in plan_loads(trial, Pace()).items()}
        course = Simulation(list(fluid_jobs(trial.spec).values()), residual_of_schedules(trial.spec, schedules))
        for _ in course:
            pass
        times = [np.array([each.end_ms - each.start_ms for each in workers[0]]) for workers in course.iterations]
        found.append([[QUANTITIES[name](each) for name in ("median", "mean", "p90")] for each in times])
    return np.array(found)


def broken(one, other, quantities=(0, 1, 2)):
    """Whether any rule `> 0 %` is, of both jobs."""
    p_values = [p_value_of_excess(one[:, job, each], other[:, job, each], 1.0) for job in (0, 1) for each in quantities]
    return min(correct_by_holm(p_values)) < ALPHA


@pytest.mark.proof
def test_at_most_2_of_200_equal_runs_alarm_and_a_slower_run_is_found(tmp_path):
    drawn = computed(tmp_path, 2000)
    pairs = drawn.reshape(200, 2, 5, 2, 3)
    alarms = sum(broken(*each) for each in pairs)
    sides = drawn[: len(drawn) // (2 * FOUND_BY) * 2 * FOUND_BY].reshape(-1, 2, FOUND_BY, 2, 3)
    found = np.mean([broken(one, 1.03 * other, (1,)) for one, other in sides])
    print(f"{alarms} of 200 alarmed; of {len(sides)} with {FOUND_BY} repetitions each, {found:.0%} found 3 %")
    assert alarms <= 2
    assert found >= 0.9
