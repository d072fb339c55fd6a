# SPDX-License-Identifier: Apache-2.0
"""Which attempt a trial keeps on a busy machine, and what its record says."""

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from analysis.reports.report import write_report
from analysis.reports.summary import summarize_run
from roundabout.runner.disturbance.attempt_choice import InheritedDisturbance, commit_best, verdict_fields
from roundabout.runner.disturbance.effect import estimate_disturbance
from roundabout.runner.testbed import Outcome
from roundabout.store import Run, StoreError
from roundabout.store.trial_states import counted_trials, state_of_record
from tests.fakes.workplace import Workplace

pytestmark = pytest.mark.unit

LATE = 7.5  # ms, beyond the limit


@pytest.fixture
def work(tmp_path):
    return Workplace(tmp_path)


def test_the_least_disturbed_of_all_attempts_is_kept_marked_and_not_repeated(work):
    """Late trainers disturb each attempt; the third has wrong figures besides."""
    work.provider.fault("s1", late_ms=[60.0, 6.0, 3.0], retransmitted=[None, None, 4])
    run = work.start()
    (trial,) = run.trials()
    assert (trial["valid"], trial["disturbed"], trial["attempt"]) == (False, True, 2)
    assert "trainers woke up 6.00 ms late" in trial["reason"]
    medians = run.table("iterations").group_by("job").aggregate([("iteration_ms", "approximate_median")])
    shortest_ms = min(medians["iteration_ms_approximate_median"].to_pylist())
    assert trial["disturbance"] == pytest.approx(6 / shortest_ms)
    assert sorted(run.path.glob("rejected/*")) == [run.path / "rejected" / f"{trial['trial']}-{n}" for n in (1, 3)]
    assert {each["attempt"]: each["disturbed"] for each in run.rejected_records()} == {1: True, 3: False}
    assert set(run.table("iterations")["attempt"].to_pylist()) == {2}
    run.check()
    assert run.listed_trials() == {trial["trial"]: "disturbed"}
    (row,) = run.table("trials").to_pylist()
    assert (row["valid"], row["disturbed"], row["disturbance"]) == (False, True, trial["disturbance"])
    assert work.notes.disturbed == [False, False, True]
    _, reasons, again = work.notes.ended[-1]
    assert not again
    assert reasons[0].startswith("attempt 2 was the least disturbed: ")
    work.resume()
    assert len(work.notes.ended) == 3
    # A run on a busy machine ends with every figure.
    results = summarize_run(run)
    assert {cell.name for cell in results.cells} == {"fair (disturbed)"}
    assert all(cell.median_ms > 0 and cell.disturbance > 0.1 for cell in results.cells)
    run.write_summary(results.record())
    text = write_report(run).read_text()
    assert "1 trials that count were disturbed by a lack of CPU time" in text
    assert "fair (disturbed)" in text
    assert "trainers woke up 6.00 ms late" in text
    assert text.count("<figure") >= 3


def test_wrong_figures_are_never_kept_as_disturbed(work, monkeypatch):
    monkeypatch.setattr("roundabout.runner.run.MAX_REPEATS", 0)
    work.provider.fault("s1", late_ms=LATE, retransmitted=4)
    run = work.start()
    (trial,) = run.trials()
    assert (trial["valid"], trial["disturbed"]) == (False, False)
    assert "trainers woke up" in trial["reason"]
    assert "segments were sent again" in trial["reason"]
    assert run.table("iterations").num_rows == 0
    assert work.notes.disturbed == [False]


def test_a_trial_with_inputs_from_a_disturbed_one_is_disturbed(tmp_path):
    run = Run.create(tmp_path, "tiny", {"experiment": {}, "testbed": {}, "plan": []})
    attempt = run.begin_attempt("k")
    attempt.commit(record_of(run, attempt, 0.2))
    inputs = {"j2": {"start_offset_ms": {"value": 1.5, "trials": ["k", "elsewhere"]}}}
    inherited = InheritedDisturbance.of_inputs(run, inputs)
    assert verdict_fields(Outcome({}, record={"disturbance": 0.01}), inherited) == {
        "valid": False,
        "reason": "inputs come from trial k, which was disturbed",
        "disturbed": True,
        "disturbance": pytest.approx(0.21),
    }
    wrong = verdict_fields(Outcome({}, ["segments were sent again"]), inherited)
    assert (wrong["valid"], wrong["disturbed"]) == (False, False)
    quiet = verdict_fields(Outcome({}), InheritedDisturbance.of_inputs(run, {}))
    assert quiet == {"valid": True, "reason": "", "disturbed": False, "disturbance": None}


OUTCOMES = st.one_of(st.just("valid"), st.just("wrong"), st.floats(0, 9, allow_nan=False))


@settings(max_examples=12)
@given(st.lists(st.one_of(st.just("wrong"), st.floats(0, 9)), max_size=2), OUTCOMES)
def test_the_kept_attempt_is_valid_or_the_least_disturbed_or_the_last(tmp_path_factory, earlier, last):
    run = Run.create(tmp_path_factory.mktemp("runs"), "tiny", {"experiment": {}, "testbed": {}, "plan": []})
    for outcome in earlier:
        attempt = run.begin_attempt("k")
        attempt.reject(record_of(run, attempt, outcome))
    attempt = run.begin_attempt("k")
    kept = commit_best(attempt, record_of(run, attempt, last))
    (stored,) = run.trials()
    assert {name: stored[name] for name in kept if name != "sha256"} == {k: v for k, v in kept.items() if k != "sha256"}
    effects = {number: each for number, each in enumerate([*earlier, last], start=1) if isinstance(each, float)}
    if last != "valid" and effects:
        assert state_of_record(stored) == "disturbed"
        assert effects[stored["attempt"]] == min(effects.values())
    else:
        assert stored["attempt"] == len(earlier) + 1
        assert state_of_record(stored) == ("valid" if last == "valid" else "invalid")
    assert len(run.rejected_records()) == len(earlier)


def record_of(run, attempt, outcome):
    """Return the record of an attempt that is valid, wrong, or disturbed by this effect."""
    disturbed = isinstance(outcome, float)
    return {
        "run": run.id,
        "trial": "k",
        "variant": "fair",
        "levels": "{}",
        "repetition": 1,
        "attempt": attempt.number,
        "valid": outcome == "valid",
        "reason": "" if outcome == "valid" else "why",
        "started_utc": "",
        "spec": {},
        "disturbed": disturbed,
        "disturbance": outcome if disturbed else None,
    }


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(["valid", "disturbed", "invalid"])), max_size=6))
def test_a_cell_counts_its_valid_trials_or_else_its_disturbed_ones(trials):
    records = [
        {"trial": str(n), "levels": levels, "valid": state == "valid", "disturbed": state == "disturbed"}
        for n, (levels, state) in enumerate(trials)
    ]
    counted = counted_trials(records)
    for levels in ("a", "b"):
        states = {each["trial"]: state_of_record(each) for each in records if each["levels"] == levels}
        best = "valid" if "valid" in states.values() else "disturbed"
        assert {key for key in states if key in counted} == {key for key, state in states.items() if state == best}


shares = st.floats(0, 1)


@given(shares, shares, st.floats(0, 500), shares)
def test_more_loss_never_has_a_smaller_effect(steal, stalled, late_ms, more):
    def effect(**measured):
        iterations = pa.table({"job": ["a", "b"], "iteration_ms": [100.0, 300.0]})
        return estimate_disturbance(measured, iterations)["disturbance"]

    least = {"steal_mean": steal, "stalled_share": stalled, "late_p90_ms": late_ms}
    assert effect(**least) >= late_ms / 100
    for name, value in least.items():
        assert effect(**least | {name: value + more}) >= effect(**least)
        assert effect(**least | {name: None}) == effect(**least | {name: 0.0})


@pytest.mark.parametrize(("field", "value"), [("disturbed", 1), ("disturbed", "no"), ("disturbance", -0.1)])
def test_a_record_with_a_wrong_disturbance_is_refused(tmp_path, field, value):
    run = Run.create(tmp_path, "tiny", {"experiment": {}, "testbed": {}, "plan": []})
    attempt = run.begin_attempt("k")
    attempt.commit({**record_of(run, attempt, "wrong"), field: value})
    with pytest.raises(StoreError, match=f"{field}: found"):
        run.trials()
