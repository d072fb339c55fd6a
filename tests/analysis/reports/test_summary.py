# SPDX-License-Identifier: Apache-2.0
"""summary.json: its schema, its figures, and what it says where something was not measured."""

import json
from pathlib import Path

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from analysis.expectations.results import gain_of_possible
from analysis.reading.cells import cells_of, first_shares
from analysis.reading.data import query
from analysis.reading.speedups import speedup
from analysis.reports.summary import summarize_run
from roundabout.models.fluid import fluid_limits

pytestmark = pytest.mark.unit

SCHEMA = json.loads((Path(__file__).parents[3] / "docs/reference/summary.schema.json").read_text())


def stored(summary):
    """A summary as a script reads it."""
    return json.loads(json.dumps(summary, allow_nan=False))


def validate(summary):
    Draft202012Validator.check_schema(SCHEMA)
    Draft202012Validator(SCHEMA).validate(stored(summary))


def cell(summary, variant, job):
    (found,) = [each for each in summary["cells"] if (each["variant"], each["job"]) == (variant, job)]
    return found


def test_a_summary_follows_its_schema(summary):
    validate(summary)


def test_the_schema_describes_every_field_and_no_other(summary):
    # Every object in the schema is closed and requires all its fields, so a field added here or there is noticed.
    extra = stored(summary)
    extra["cells"][0]["last_half"]["new_ms"] = 1.0
    with pytest.raises(ValidationError, match="new_ms"):
        Draft202012Validator(SCHEMA).validate(extra)
    short = stored(summary)
    del short["cells"][0]["fluid"]["alone_ms"]
    with pytest.raises(ValidationError, match="alone_ms"):
        Draft202012Validator(SCHEMA).validate(short)


def test_cells_come_in_the_order_of_the_experiment(summary):
    order = [(each["variant"], each["job"]) for each in summary["cells"]]
    assert order == [(variant, job) for variant in ("alone", "fair", "unfair") for job in ("j1", "j2")]
    assert [each["iterations"] for each in summary["cells"]] == [10, 10, 50, 50, 50, 50]
    assert {each["repetitions"] for each in summary["cells"]} == {5}


def test_figures_are_those_of_all_iterations_of_all_repetitions(run, summary):
    (fair,) = [each for each in cells_of(run) if each.variant == "fair"]
    times = np.concatenate(fair.repetitions("j1"))
    assert len(times) == 250
    own = cell(summary, "fair", "j1")
    assert own["median_ms"] == pytest.approx(np.median(times))
    assert own["mean_ms"] == pytest.approx(np.mean(times))
    assert (own["count"], own["p99_ms"], own["p99_ci95_ms"]) == (250, None, None)
    assert own["max_ms"] == times.max()
    assert own["median_ci95_ms"][0] <= own["median_ms"] <= own["median_ci95_ms"][1]


def test_the_toy_behaves_as_the_paper_says(summary):
    faster, share = summary["expectations"][:2]
    assert [each["verdict"] for each in (faster, share)] == ["pass", "pass"]
    assert (faster["paper"], faster["basis"], faster["rows"]) == (1.23, "fitted", ["A Fig 1b, 1c, 1d"])
    assert faster["measured"] == pytest.approx(1.23, abs=0.02)
    assert share["measured"] == pytest.approx(2.0, abs=0.1)
    assert share["ci95"][0] < share["measured"] < share["ci95"][1]


def test_a_speedup_without_a_job_is_that_of_the_job_that_gains_least(run, summary):
    alone, fair, unfair = cells_of(run)
    each = [speedup(fair, unfair, job)[0] for job in ("j1", "j2")]
    assert speedup(fair, unfair, None)[0] == pytest.approx(min(each))
    assert [cell(summary, "unfair", job)["speedup"] for job in ("j1", "j2")] == pytest.approx(each)
    assert speedup(fair, unfair, "j9") is None
    assert alone.variant == "alone"


def test_the_slowest_worker_makes_the_iteration(run):
    table = run.table("iterations")
    (fair,) = [each for each in cells_of(run) if each.variant == "fair"]
    rows = [row for row in table.to_pylist() if row["trial"] == fair.trials[0] and row["job"] == "j1"]
    slowest = [max(row["iteration_ms"] for row in rows if row["iteration"] == number) for number in range(50)]
    repetition = rows[0]["repetition"]
    assert fair.times["j1"][repetition].tolist() == slowest


def test_limits_and_gain(summary):
    own = cell(summary, "unfair", "j2")
    assert own["fluid"]["alone_ms"] == pytest.approx(293)
    assert own["fluid"]["fair_ms"] == pytest.approx(363.8, abs=0.1)
    assert own["fluid"]["interleaved_ms"] == pytest.approx(293)
    assert 0.95 < own["last_half"]["gain_of_possible"] < 1.05
    assert cell(summary, "fair", "j2")["last_half"]["gain_of_possible"] is None


def test_without_a_possible_gain_its_share_is_none(run):
    alone, _, unfair = cells_of(run)
    for job in alone.times:
        assert gain_of_possible(unfair, alone, job, fluid_limits(unfair.spec)[job]) is None


def test_the_same_run_gives_the_same_summary(run, summary):
    assert summarize_run(run).record() == summary


def test_with_three_repetitions_there_is_no_interval(make_run):
    summary = summarize_run(make_run(repetitions=3)).record()
    validate(summary)
    assert all(each["median_ci95_ms"] is None for each in summary["cells"])
    assert all(each["ci95"] is None for each in summary["expectations"])
    assert {each["verdict"] for each in summary["expectations"]} <= {"inconclusive", "not measured"}
    assert [each["verdict"] for each in summary["expectations"][:2]] == ["inconclusive", "inconclusive"]


def test_invalid_trials_count_in_no_figure_and_are_named(make_run):
    spoilt = {("fair", repetition) for repetition in (1, 2, 3, 4, 5)} | {("unfair", 2)}
    summary = summarize_run(make_run(spoilt=spoilt)).record()
    validate(summary)
    assert {each["variant"]: each["repetitions"] for each in summary["cells"]} == {"alone": 5, "unfair": 4}
    assert len(summary["invalid_trials"]) == 6
    assert "CPU busy" in summary["invalid_trials"][0]["reason"]
    assert [each["verdict"] for each in summary["expectations"][:3]] == ["not measured", "pass", "not measured"]


def test_shares_are_taken_while_both_send(run):
    fair, unfair = cells_of(run)[1:]
    assert len(first_shares(run, fair, "j1", "j2")) == 5
    assert np.mean(first_shares(run, fair, "j1", "j2")) == pytest.approx(1.0, abs=0.02)
    assert min(first_shares(run, unfair, "j1", "j2")) > 1.8


def test_marks_per_iteration_are_the_jobs_own(run, summary):
    fair = cell(summary, "fair", "j1")["marks_per_iteration"]
    last = query(run, "select sum(m) as m from (select max(marks) as m from marks join trials using (trial) "
                 "where trials.variant = 'fair' and source = 's0' group by trial)")["m"][0].as_py()  # fmt: skip
    assert fair["mean"] == pytest.approx(float(last) / 250, rel=0.01)  # but for what the last iterations do not claim
    assert fair["mean_ci95"][0] < fair["mean"] < fair["mean_ci95"][1]
    assert 0 < fair["bound"] < 50  # what is marked in two periods of 10 ms
    assert 0 <= fair["unattributed_share"] < 0.03
    assert fair["counted_by"] == "switch ports"
    assert cell(summary, "unfair", "j1")["marks_per_iteration"]["median"] == 0
    assert cell(summary, "alone", "j2")["marks_per_iteration"]["unattributed_share"] is None


def test_without_sources_marks_of_a_shared_link_are_nobodys(short_run):
    for path in short_run.path.glob("trials/*/marks.parquet"):
        path.unlink()
    summary = summarize_run(short_run).record()
    validate(summary)
    assert [each["marks_per_iteration"] is None for each in summary["cells"]] == [False, False, True, True, True, True]
