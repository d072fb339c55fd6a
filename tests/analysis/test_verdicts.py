# SPDX-License-Identifier: Apache-2.0
"""How expectations of each kind are judged, what is said of them, and what is wrong with one."""

import json
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from analysis.expectations.expectation_check import complain
from analysis.expectations.expectations import Limits
from analysis.expectations.repetition_needs import with_needs
from analysis.expectations.results import iteration_statistics
from analysis.expectations.verdict_tables import cards, screen, summarize
from analysis.expectations.verdicts import combine, judge_bounds, judge_expectation, why_not_shown
from analysis.papers import Claim
from analysis.quantities import (
    CachedReading,
    Case,
    Curve,
    Quantity,
    QuantityRequest,
    all_quantities,
    find_quantity,
    interleaving,
    marks,
)
from analysis.reading.congestion.marks import JobMarks
from roundabout.core.errors import UsageError
from roundabout.spec import SpecError, load_experiment
from roundabout.spec.expectation import Bound, Curve as ExpectedCurve, Order, Row, Sign, Value
from roundabout.store import Run
from roundabout.store.files import read_json, write_json
from tests.analysis.run_verdicts import judge_run

pytestmark = pytest.mark.unit

FINITE = st.floats(-1e6, 1e6)
PLAIN = """
name: plain
about: one
topology: dumbbell-2x2
iterations: 2
transport: {name: reno}
jobs: {j1: {profile: bert-8, workers: [s0, s1]}}
factors: {variant: {fair: {}, unfair: {}}}
expect:
  - {%s}
"""


def made_up_reading(*, is_exact=False):
    experiment = SimpleNamespace(name="toy", altered_fields={})
    return SimpleNamespace(is_exact=is_exact, disturbed={}, testbed="lab", experiment=experiment)


@pytest.fixture
def toy(monkeypatch):
    """Registers a quantity `toy` that answers with what it is given, and judges an expectation of it."""

    def judged(expectation, answer, is_exact=False, **about):
        facts = {"unit": "ms", "digits": 1, "by": "job", "curve": isinstance(expectation, ExpectedCurve)} | about
        own = Quantity(
            "toy", "a toy", measure=lambda _request: answer, needs=(), signed=False, jobs=(), note=None, **facts
        )
        monkeypatch.setitem(all_quantities(), "toy", own)
        return judge_expectation(made_up_reading(is_exact=is_exact), Claim(expectation))

    return judged


def exact(name, value, **properties):
    return Case(name, value, (value, value), properties)


def expected(kind, **fields):
    return kind(what="toy", basis="predicted", **fields)


@pytest.mark.parametrize(
    ("measured", "ci95", "word"),
    [
        (1.2, (1.16, 1.3), "pass"), (1.16, (1.14, 1.18), "inconclusive"), (1.12, (1.1, 1.14), "fail"),
        (1.2, (0.5, 2.0), "inconclusive"), (1.2, None, "inconclusive"),
    ],
)  # fmt: skip
def test_a_value_is_judged_by_its_interval(toy, measured, ci95, word):
    found = toy(expected(Value, paper=1.23, tolerance=0.08), [Case("j1", measured, ci95)])
    assert (found.verdict, found.measured, found.ci95, found.paper) == (word, measured, ci95, 1.23)


@pytest.mark.parametrize(("measured", "word"), [(1.2, "pass"), (1.0, "fail")])
def test_computed_values_have_exact_intervals(toy, measured, word):
    found = toy(expected(Value, paper=1.23, tolerance=0.08), [Case("j1", measured)], is_exact=True)
    assert (found.verdict, found.ci95) == (word, (measured, measured))


def test_a_mean_over_draws_keeps_its_interval_where_each_draw_is_exact(toy):
    drawn = Case("j1", 1.2, (1.1, 1.3), is_drawn=True)
    found = toy(expected(Value, paper=1.23, tolerance=0.08), [drawn], is_exact=True)
    assert (found.verdict, found.ci95) == ("inconclusive", (1.1, 1.3))


def test_without_a_figure_nothing_is_judged(toy):
    found = toy(expected(Value, paper=1, tolerance=1), [])
    assert (found.verdict, found.measured, found.found) == ("not measured", None, "")


def test_an_expectation_fails_if_one_of_several_jobs_fails(toy):
    found = toy(expected(Value, paper=10.0, within=0.1), [exact("j1", 10.5), exact("j2", 12.0)])
    assert (found.verdict, found.measured) == ("fail", 12.0)
    assert found.found == "10.5 to 12.0 ms in 2 cases; not so: j2 12.0 ms"
    assert [part.verdict for part in found.parts] == ["pass", "fail"]


@pytest.mark.parametrize(
    ("ci95", "word"),
    [((1.0, 2.0), "pass"), ((2.5, 3.0), "fail"), ((1.5, 2.5), "inconclusive"), ((0.0, 3.0), "inconclusive")],
)
def test_a_bound_is_judged_by_the_interval(toy, ci95, word):
    assert toy(expected(Bound, at_least=0.5, at_most=2), [Case("j1", 1.0, ci95)]).verdict == word


@pytest.mark.parametrize(("source", "whose"), [(None, "ours: at least 0.5"), ("A Fig 2", "paper at least 0.5")])
def test_a_bound_that_no_paper_prints_is_called_ours(toy, source, whose):
    found = toy(expected(Bound, at_least=0.5, source=source), [exact("j1", 1.0)])
    assert whose in cards([found])
    (table,) = screen([found])
    ((_, said, *_),) = table.sections[0].rows
    assert said.note == ("ours" if source is None else "")


@pytest.mark.parametrize(
    ("repetitions", "ci95", "why"),
    [
        (3, None, "too few repetitions: a 95 % interval takes 4"),
        (4, (0.4, 1.2), "too few repetitions: about 5 would decide"),
        (3, (0.4, 1.2), "undecidable by repetitions"),  # an interval over draws
        (4, (0.6, 1.2), ""),
    ],
)
def test_an_inconclusive_verdict_has_its_reason(toy, repetitions, ci95, why):
    (found,) = with_needs([toy(expected(Bound, at_least=0.5), [Case("j1", 1.0, ci95)])], repetitions)
    (table,) = screen([found, found])
    assert table.caption == (f"2 inconclusive: {why}" if why else "")
    assert (f"</span> ({why})" in cards([found])) is bool(why)


def test_reasons_of_one_kind_share_a_line(toy):
    judged = [toy(expected(Bound, at_least=0.5), [Case("j1", 1.0, ci95)]) for ci95 in ((0.4, 1.2), (0.1, 1.2))]
    (table,) = screen(with_needs(judged, repetitions=4))
    assert table.caption == "2 inconclusive: too few repetitions, each as the page says"


@given(value=FINITE, low=FINITE, high=FINITE, spread=st.floats(0, 1e3))
def test_a_bounds_verdict_agrees_with_the_interval(value, low, high, spread):
    low, high = min(low, high), max(low, high)
    sure = judge_bounds(exact("a", value), Limits(low, high)).verdict
    assert sure == ("pass" if low <= value <= high else "fail")
    wide = judge_bounds(Case("a", value, (value - spread, value + spread)), Limits(low, high)).verdict
    assert wide in (sure, "inconclusive")
    assert judge_bounds(Case("a", value), Limits(low, high)).verdict == "inconclusive"


@pytest.mark.parametrize(("least", "word"), [(9.0, "fail"), (3.0, "inconclusive")])
def test_an_infinite_value_fails_a_bound_and_is_null_in_json(toy, least, word):
    found = toy(expected(Bound, at_most=4), [Case("j1", math.inf, (least, math.inf))])
    assert (found.verdict, found.measured, found.ci95) == (word, None, None)
    assert json.loads(json.dumps(found.record(), allow_nan=False))["parts"][0]["measured"] is None


@pytest.mark.parametrize(
    ("of", "text", "word"),
    [("fair", "never", "fail"), ("unfair", "6.0", "pass"), (None, "fair never, unfair 6.0", "fail")],
)
def test_jobs_that_never_interleave_are_reported(run, of, text, word):
    bound = Bound(what="iteration from which jobs stay interleaved", of=of, at_most=6, basis="predicted")
    found = judge_expectation(CachedReading(run), Claim(bound))
    assert (found.found, found.verdict) == (text, word)


def test_some_repetitions_that_never_interleave_are_counted(run, monkeypatch):
    firsts = iter([2, 3, None, 3, 3])
    monkeypatch.setattr(interleaving, "first_lasting", lambda _overlap: next(firsts))
    bound = Bound(what="iteration from which jobs stay interleaved", of="fair", at_most=4, basis="predicted")
    found = judge_expectation(CachedReading(run), Claim(bound))
    assert (found.found, found.verdict) == ("never in 1 of 5 repetitions", "inconclusive")


def test_the_interval_of_rare_marks_is_not_negative(run, monkeypatch):
    rare = JobMarks("NICs", [np.zeros(10), np.zeros(10), np.zeros(10), np.ones(10)], 0, None)
    monkeypatch.setattr(
        marks, "marks_of_cells", lambda _run, cells: [dict.fromkeys(cell.times, rare) for cell in cells]
    )
    for case in find_quantity("ECN marks per iteration").measure(QuantityRequest(CachedReading(run), "alone")):
        assert (case.value, case.ci95[0]) == (0.25, 0)
    assert iteration_statistics(rare.known)["mean_ci95"][0] == 0


def test_a_row_has_a_verdict_for_each_column(toy):
    cases = [exact("x", 4.0, model="BERT"), exact("y", 9.0, model="VGG")]
    found = toy(expected(Row, row={"BERT": 4.2, "VGG": 8.0, "ResNet": 1.0}, within=0.1, by="model"), cases)
    assert [(part.name, part.verdict) for part in found.parts] == [
        ("BERT", "pass"), ("VGG", "fail"), ("ResNet", "not measured"),
    ]  # fmt: skip
    assert found.verdict == "fail"
    assert found.found == "BERT 4.00 ms, VGG 9.00 ms"


@pytest.mark.parametrize(
    ("second", "word"),
    [
        ((2.0, (1.9, 2.1)), "pass"), ((0.5, (0.4, 0.6)), "fail"), ((2.0, (1.0, 3.0)), "inconclusive"),
        ((2.0, None), "inconclusive"),
    ],
)  # fmt: skip
def test_an_order_rises(toy, second, word):
    cases = [Case("fair", 1.0, (0.9, 1.1), {"variant": "fair"}), Case("unfair", *second, {"variant": "unfair"})]
    assert toy(expected(Order, order=("fair", "unfair"), by="kind"), []).verdict == "not measured"
    by_name = [Case(each.name, each.value, each.ci95) for each in cases]
    assert toy(expected(Order, order=("fair", "unfair"), by="kind"), by_name).verdict == word


def test_a_curve_is_compared_where_both_are(toy):
    line = Curve.from_figures("run", [(0.0, (1.0, (0.9, 1.1))), (10.0, (3.0, (2.9, 3.1)))])
    found = toy(expected(ExpectedCurve, curve=((5.0, 2.1), (10.0, 4.0), (20.0, 9.0)), within=0.1), [line])
    assert [(part.x, part.measured, part.verdict) for part in found.parts] == [
        (5.0, 2.0, "pass"), (10.0, 3.0, "fail"), (20.0, None, "not measured"),
    ]  # fmt: skip
    assert found.found == "off by 5 to 25 % at 2 points"


@pytest.mark.parametrize(("off", "word"), [(0.1, "pass"), (0.5, "inconclusive"), (None, "inconclusive")])
def test_a_point_of_a_curve_is_judged_by_the_intervals_around_it(toy, off, word):
    measured = [(x, (y, off and (y - off, y + off))) for x, y in ((0.0, 1.0), (10.0, 3.0))]
    found = toy(
        expected(ExpectedCurve, curve=((5.0, 2.1), (20.0, 9.0)), within=0.1), [Curve.from_figures("run", measured)]
    )
    assert (found.verdict, found.parts[0].ci95) == (word, off and (2.0 - off, 2.0 + off))


def test_a_printed_curve_is_compared_at_measured_points(toy):
    line = Curve("run", ((0.0, 0.2 * math.exp(7.281 / 5)), (16.0, 3.0))).exactly
    found = toy(expected(ExpectedCurve, curve="salamy/table-3.9/BERT-large/rdma/curve", within=0.05), [line])
    assert [part.verdict for part in found.parts] == ["pass", "fail"]
    assert found.source == "Salamy, Table 3.9, Figure B-3"
    assert found.rows == ("C Table 3.9, Fig B-3",)


def test_only_restricts_an_expectation_to_some_cases(toy):
    cases = [exact("a", 1.0, model="BERT"), exact("b", 9.0, model="VGG")]
    assert toy(expected(Bound, at_most=2, only={"model": "BERT"}), cases).verdict == "pass"
    assert toy(expected(Bound, at_most=2, only={"model": ("BERT", "VGG")}), cases).verdict == "fail"


def test_an_unknown_quantity_is_not_measured_and_says_so():
    luck = Value(what="luck", paper=1, tolerance=1, basis="predicted")
    found = judge_expectation(made_up_reading(), Claim(luck))
    assert found.verdict == "not measured"
    assert "found no quantity 'luck'" in found.found


@pytest.fixture
def set_in(run, monkeypatch):
    """What is judged of a run in which `--set` changed these."""

    def judged(changes):
        experiment = CachedReading(run).experiment.model_copy(update={"changes": changes})
        monkeypatch.setattr(CachedReading, "experiment", experiment)
        return judge_run(run)

    return judged


@pytest.mark.parametrize("changes", [{"jobs.j1.transport.T_us": 90}, {"iterations": 5, "only": ["unfair"]}])
def test_a_run_changed_by_set_is_not_judged(set_in, changes):
    path, value = next(iter(changes.items()))
    for found in set_in(changes):
        assert (found.verdict, found.measured) == ("not measured", None)
        assert found.found == f"not judged: changed by --set {path}={value}"
    assert found.expected


@pytest.mark.parametrize(
    "changes", [{"repetitions": 1, "seed": 2, "only": ["unfair"]}, {"iterations": 5, "expect": []}]
)
def test_how_often_and_which_trials_ran_leaves_what_is_expected(set_in, changes):
    assert "pass" in {found.verdict for found in set_in(changes)}


def test_a_page_says_why_nothing_is_held_against_the_paper(set_in):
    changed = set_in({"iterations": 5})
    assert "not judged: changed by --set iterations=5" in cards(changed)
    claims = [replace(each, kind="claim", claim="a claim") for each in changed]
    assert summarize(claims, "Salamy") == "<p>Not held against Salamy: not judged: changed by --set iterations=5.</p>"
    assert summarize([], "Salamy") == "<p>Not held against Salamy: too little was measured.</p>"


def test_verdicts_combine():
    assert combine([]) == "not measured"
    assert combine(["pass", "not measured"]) == "pass"
    assert combine(["pass", "inconclusive"]) == "inconclusive"
    assert combine(["inconclusive", "fail", "pass"]) == "fail"


def test_a_run_from_before_there_was_a_basis_has_the_catalogues(make_run):
    run = make_run(repetitions=4)
    path = run.path / "manifest.json"
    manifest = read_json(path)
    old = {"of": "unfair", "over": None, "job": None, "at": None}
    manifest["experiment"]["expect"] = [
        {**old, "what": "speedup of median iteration time", "over": "fair", "paper": 1.23, "tolerance": 0.08},
        {**old, "what": "first-iteration bandwidth share j1/j2", "paper": 1.7, "tolerance": 0.5},
    ]
    write_json(path, manifest)
    faster, share = judge_run(Run(run.path))
    assert (faster.verdict, faster.basis, faster.source) == ("pass", "fitted", "HotNets'22, Figures 1b to 1d")
    assert (share.basis, share.source, share.paper) == (None, None, 1.7)  # the catalogue has another figure


WRONG = [
    ("what: speed-up of median iteration time, of: unfair, over: fair, paper: 1, tolerance: 1", "what",
     "'speed-up of median iteration time'", "a quantity (", "speedup of median iteration time"),
    ("what: speedup of median iteration time, of: unfair, paper: 1, tolerance: 1", "over", "nothing",
     "a variant to compare with", None),
    ("what: mean iteration time, of: unfair, over: fair, paper: 1, tolerance: 1", "over", "'fair'", "none:", None),
    ("what: first-iteration bandwidth share j1/j2, paper: 1, tolerance: 1", "of", "nothing", "a variant:", None),
    ("what: first-iteration bandwidth share j1/j2, of: fair, paper: 1, tolerance: 1", "what",
     "'first-iteration bandwidth share j1/j2'", "there is no j2", None),
    ("what: mean iteration time, paper: hotnets/fig-1e, tolerance: 1", "paper", "'hotnets/fig-1e'",
     "a name of analysis/papers", "hotnets/fig-1d"),
    ("what: mean iteration time, paper: hotnets/fig-1b, tolerance: 1", "paper", "hotnets/fig-1b, a row", "a figure",
     None),
    ("what: mean iteration time, row: {j1: hotnets/fig-1b}, tolerance: 1", "row.j1", "hotnets/fig-1b, a row",
     "a figure", None),
    ("what: mean iteration time, row: hotnets/fig-1d, tolerance: 1", "row", "hotnets/fig-1d, a figure", "a row", None),
    ("what: mean iteration time, curve: [[1, 2], [3, 4]], tolerance: 1", "what", "'mean iteration time'",
     "a quantity that is a curve", None),
    ("what: iteration time under load, at_most: 3", "what", "'iteration time under load'", "that is a figure", None),
]  # fmt: skip


@pytest.mark.parametrize(("written", "field", "found", "wanted", "hint"), WRONG)
def test_a_wrong_expectation_is_refused_with_its_place(  # noqa: PLR0917
    tmp_path, written, field, found, wanted, hint
):
    path = tmp_path / "plain.yaml"
    path.write_text(PLAIN % f"{written}, basis: predicted")
    load_experiment(path)  # a specification alone has neither quantities nor papers
    with pytest.raises(SpecError) as caught:
        load_experiment(path, complain=complain)
    error = caught.value
    assert error.line == 10
    assert error.field.startswith("expect[0]")
    assert error.field.endswith(field) or found == "nothing"
    assert (error.found, hint or "") == (found, hint or "")
    assert wanted in error.expected
    assert (hint or "") in (error.hint or "")


def test_a_misspelt_quantity_gets_a_suggestion():
    with pytest.raises(UsageError, match="found no quantity 'mean iteration tim'") as caught:
        find_quantity("mean iteration tim")
    assert "mean iteration time" in caught.value.hint


def test_claims_are_counted_by_what_became_of_them(toy):
    kinds = [None, (1.5, 2.5), (2.5, 3.0), (1.0, 2.0)]
    claims = [
        toy(expected(Bound, at_most=2.0, claim="a claim"), [Case("j1", 1.5, ends)] if ends else []) for ends in kinds
    ]
    words = "pass: 1; fail: 1; inconclusive: 1; not measured: 1."
    counted = f"Of 4 claims of Salamy, {words}"
    assert summarize(claims, "Salamy") == f"<p><b>{counted}</b></p><p>Not so here:</p><ul><li>a claim</li></ul>"


@pytest.mark.parametrize(
    ("ci95", "word"),
    [((1.01, 1.2), "pass"), ((0.9, 0.99), "fail"), ((0.99, 1.2), "inconclusive"), ((1.0, 1.0), "fail")],
)
def test_a_sign_counts_only_where_the_interval_excludes_1(toy, ci95, word):
    found = toy(expected(Sign, sign={"j1": "above"}), [Case("j1", 1.0, ci95)])
    assert (found.verdict, found.expected) == (word, "j1 above 1")


def test_a_claim_about_one_case_names_it_once(toy):
    found = toy(expected(Bound, at_least=2, claim="It is two at least"), [exact("ResNet-50, TCP", 0.8)])
    assert (found.verdict, found.found) == ("fail", "ResNet-50, TCP 0.800 ms")


@pytest.mark.parametrize(
    ("experiment", "testbed", "rows", "why"),
    [
        ("unfair-vgg19", "fluid", ["A Fig 2"], "not shown: the flow level has no transports, timers or queues"),
        ("unfair-vgg19", "packets", ["A Fig 2"], ""),
        ("injection-websearch", "packets", ["C Fig 3-8"], "not shown: the packet level runs no programs"),
        ("cross-traffic-all", "fluid", ["C Fig 3-2", "C Table 3.1"], ""),
        ("cluster-dynamic-model-parallel", "fluid", ["B Fig 4.15"], ""),
        ("cluster-marks-model-parallel", "fluid", ["B Fig 4.15"],
         "not shown: the flow level has no transports, timers or queues"),
        ("unfair-vgg19", "fluid", [], ""),
    ],
)  # fmt: skip
def test_a_result_is_not_judged_where_what_it_depends_on_is_not_modelled(experiment, testbed, rows, why):
    assert why_not_shown(experiment, testbed, rows) == why
