# SPDX-License-Identifier: Apache-2.0
"""Rules that runs must keep: how they are written, when they are broken, and how often by chance."""

from xml.etree import ElementTree as ET

import numpy as np
import pytest

from analysis.guard import ALPHA, judge, junit, rule
from analysis.statistics.one_sided import exceeds, holm
from roundabout.cli.main import main
from roundabout.errors import UsageError


@pytest.mark.parametrize("text", ["p99 > 5 %", "median<-3%", " mean >  0.5 % "])
def test_a_rule_is_a_quantity_a_side_and_per_cent(text):
    assert str(rule(text)).replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize("text", ["p99 > 5", "p98 > 5 %", "p99 >= 5 %", "p99 5 %", "", "mean > 1e3 %", "mean < -100 %"])
def test_what_is_no_rule_is_refused_with_what_is_expected(text):
    with pytest.raises(UsageError, match=r"^--fail-if: found '.*', expected QUANTITY > NUMBER %"):
        rule(text)


def test_chances_are_corrected_for_how_many_there_are():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.6]) == [1.0, 1.0]


def test_more_than_so_much_is_told_from_less():
    quick, slow = [100.0, 101.0, 99.0, 100.0], [105.0, 106.0, 104.0, 105.0]
    assert exceeds(quick, slow, 1.03) < ALPHA
    assert exceeds(quick, slow, 1.05) > 0.3
    assert exceeds(slow, quick, 1.0) > 0.99
    assert exceeds([100.0] * 4, [104.0] * 4, 1.05) == 1.0


def test_by_chance_a_comparison_is_broken_as_seldom_as_is_said():
    generator = np.random.default_rng(7)
    drawn = generator.normal(100, 1, (2000, 6, 2, 5))  # comparisons of six figures, two runs of five repetitions
    alarms = sum(min(holm([exceeds(*sides, 1.0) for sides in figures])) < ALPHA for figures in drawn)
    assert alarms / len(drawn) <= 0.017  # of so many, ALPHA and three standard errors


def test_a_slower_run_breaks_a_rule_and_the_same_run_none(run, make_run, tmp_path, capsys):
    slower = make_run("slow", slowdown=1.05)  # of computing: 2.5 % of an iteration alone
    told = judge([rule("median > 1 %"), rule("p99 > 1 %")], run, [slower])
    assert [each.verdict for each in told if each.cell == "alone" and each.rule == "median > 1 %"] == ["broken"] * 2
    assert {each.verdict for each in told if each.rule == "p99 > 1 %"} == {"cannot tell"}
    suite = ET.fromstring(junit(told))
    assert len(suite) == len(told) == int(suite.get("tests"))
    assert len(suite.findall("*/failure")) == int(suite.get("failures")) >= 2
    assert len(suite.findall("*/skipped")) == 6

    file = tmp_path / "rules.xml"
    broken = main(["compare", str(run.path), str(slower.path), "--fail-if", "median > 1 %", "--junit", str(file)])
    assert (broken, "median > 1 %: alone, j1: +2." in capsys.readouterr().err) == (3, True)
    assert ET.parse(file).getroot().get("failures") != "0"
    assert main(["compare", str(run.path), str(run.path), "--fail-if", "median > 1 %"]) == 0
    assert main(["compare", str(run.path), str(run.path), "--fail-if", "p99 > 1 %"]) == 3
    assert "p99 > 1 %: judged nowhere: " in capsys.readouterr().err
