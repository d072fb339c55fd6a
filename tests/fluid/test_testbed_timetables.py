# SPDX-License-Identifier: Apache-2.0
"""Cassini from an experiment's file to its tables, in the fluid testbed."""

from collections.abc import Mapping
from typing import Any

import pytest

from analysis.quantities import CachedReading, QuantityRequest, find_quantity
from analysis.reading.cells import cells_of
from analysis.reading.trial_inputs import with_measured_profiles
from analysis.reports.summary import summarize_run
from roundabout.store import Run
from tests.computed_runs import compute_run

pytestmark = pytest.mark.unit

SHIFTING = """
name: shifting
about: Jobs are shifted in time by what trials before say of them
topology: dumbbell-2x2
jobs:
  j1: {profile: vgg19-fig1, workers: [s0, s2]}
  j2: {profile: vgg19-fig1, workers: [s1, s3], arrives_ms: 400}
iterations: 30
transport: {name: dcqcn}
study: variants
factors:
  variant:
    alone: {one_job_at_a_time: true, iterations: 12}
    measured: {cassini: {profiles: alone}}
    given: {cassini: {}}
    once: {cassini: {profiles: alone, held: false}}
    behind: {cassini: {profiles: alone, clocks: {j2: {behind_ms: 3}}}}
    incompatible: {cassini: {}, jobs: {j1: {profile: bert-8}, j2: {profile: vgg19-1200}}}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    path = tmp_path_factory.mktemp("shifting") / "shifting.yaml"
    path.write_text(SHIFTING)
    return compute_run(path)


def trial_of(run: Run, variant: str) -> Mapping[str, Any]:
    return next(trial for trial in run.trials() if trial["variant"] == variant)


def rows_of(run: Run, variant: str, job: str) -> list[dict[str, Any]]:
    rows = run.table("iterations").to_pylist()
    return [row for row in rows if (row["variant"], row["job"], row["rank"]) == (variant, job, 0)]


def test_the_record_says_of_which_trials_a_timetable_is(run: Run) -> None:
    alone = {trial["trial"] for trial in run.trials() if trial["variant"] == "alone"}
    for variant, trials in (("measured", alone), ("given", set())):
        trial = trial_of(run, variant)
        for job in ("j1", "j2"):
            found = trial["given"][job]["timetable"]
            assert set(found["trials"]) == trials
            assert found["value"] == trial["spec"]["jobs"][job]["timetable"]
            assert found["value"]["period_ms"] == pytest.approx(293, rel=0.01)


def test_the_report_has_the_circles_that_timetables_are_from(run: Run) -> None:
    cells = {cell.variant: cell for cell in cells_of(run)}
    for variant, suffix in {"measured": "-measured", "given": ""}.items():
        jobs = with_measured_profiles(run, [cells["alone"], cells[variant]]).jobs
        assert {job.profile.name for job in jobs.values()} == {f"vgg19-fig1{suffix}"}


@pytest.mark.parametrize("variant", ["measured", "given"])
def test_jobs_that_fit_do_not_meet_and_are_held(run: Run, variant: str) -> None:
    timetable = trial_of(run, variant)["spec"]["jobs"]["j2"]["timetable"]
    for job in ("j1", "j2"):
        rows = rows_of(run, variant, job)
        assert [row["communication_ms"] for row in rows] == pytest.approx([143] * 30, rel=0.01)
        delays = [row["delay_ms"] for row in rows]
        longer_ms = 29 * (timetable["period_ms"] - 293)  # periods are a little longer than iterations
        assert 0 < sum(delays) == pytest.approx(longer_ms, abs=2 * timetable["threshold_ms"])
        assert max(delays) < 2 * timetable["threshold_ms"]
        assert [row["iteration_ms"] - row["delay_ms"] for row in rows] == pytest.approx([293] * 30, rel=0.01)
    late = (rows_of(run, variant, "j2")[0]["start_ns"] - rows_of(run, variant, "j1")[0]["start_ns"]) / 1e6
    assert 400 <= late < 400 + timetable["period_ms"], "it joins at its next instant"
    assert late == pytest.approx(timetable["shift_ms"] + timetable["period_ms"])


@pytest.mark.proof
def test_jobs_that_are_not_held_begin_alike_and_drift(run: Run) -> None:
    timetables = [trial_of(run, variant)["spec"]["jobs"]["j2"]["timetable"] for variant in ("measured", "once")]
    assert timetables[1] == {**timetables[0], "holds": False}
    rows = rows_of(run, "once", "j2")
    assert {row["delay_ms"] for row in rows} == {None}
    early_ms = rows[0]["iteration_ms"] - timetables[1]["period_ms"]
    drift = figures(run, "drift from the timetable", "once")["j2"]
    assert drift == pytest.approx(60e3 * early_ms / 293, rel=0.01)
    assert drift < figures(run, "drift from the timetable", "given")["j2"] - 10
    (meeting,) = [each for each in summarize_run(run).meetings if each.name == "once"]
    assert (meeting.adjustments, meeting.drift) == (None, pytest.approx(drift, rel=0.1))


def test_a_clock_that_is_behind_begins_late(run: Run) -> None:
    right, behind = (trial_of(run, variant)["spec"]["jobs"] for variant in ("measured", "behind"))
    assert behind["j1"]["timetable"] == right["j1"]["timetable"]
    assert behind["j2"]["timetable"]["shift_ms"] == pytest.approx(right["j2"]["timetable"]["shift_ms"] + 3)


def test_jobs_that_could_not_keep_them_only_begin_at_their_instants(run: Run) -> None:
    trial = trial_of(run, "incompatible")
    assert [set(fields) for fields in trial["given"].values()] == [{"start_offset_ms"}] * 2
    assert {row["delay_ms"] for row in rows_of(run, "incompatible", "j1")} == {None}
    assert all(each["valid"] for each in run.trials())


def figures(run: Run, what: str, of: str, over: str | None = None) -> dict[str, float]:
    return {
        case.name: case.value
        for case in find_quantity(what).measure(QuantityRequest(CachedReading(run), of=of, over=over))
    }


def test_quantities_show_how_jobs_do_under_time_shifts(run: Run) -> None:
    assert figures(run, "compatibility score", "given") == {"given": 1}
    assert 0.7 < figures(run, "compatibility score", "incompatible")["incompatible"] < 0.9
    assert figures(run, "median communication time", "measured") == pytest.approx({"j1": 143, "j2": 143}, rel=0.01)
    for what in ("median communication time over that", "99 % tail of communication time over that"):
        assert figures(run, what, "measured", "alone") == pytest.approx({"j1": 1, "j2": 1}, rel=0.02)
    measured = figures(run, "adjustments per minute", "measured")
    rows = rows_of(run, "measured", "j1")
    minutes = (rows[-1]["comm_end_ns"] - rows[0]["start_ns"]) / 60e9
    assert measured["j1"] == pytest.approx(sum(row["delay_ms"] > 0 for row in rows) / minutes)
    assert figures(run, "adjustments per minute", "incompatible") == {}
    assert figures(run, "speedup of 90 % tail of iteration time", "measured", "alone")["j1"] == pytest.approx(
        1, rel=0.03
    )
