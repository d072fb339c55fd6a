# SPDX-License-Identifier: Apache-2.0
"""The study of clusters: speed-ups over the right scheduler, figures of jobs, and where nothing is known."""

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from rich.console import Console

from analysis.quantities import CachedReading, QuantityRequest, find_quantity
from analysis.reading.cached_run import CachedRun
from analysis.reading.cells import CellId
from analysis.reading.data import ports
from analysis.reading.timelines import read_clusters
from analysis.render.figure_data import csv_of
from analysis.render.style import variant_colours
from analysis.reports.report import terminal_report, write_report
from analysis.reports.summary import stored_or_new, summarize_run
from analysis.statistics.intervals import estimate, paired_ratio, ratio
from analysis.studies.cluster import figures
from roundabout.spec import load_experiment
from roundabout.store import StoreError
from tests.analysis.cluster_runs import JOB, MODELS, SLOWED, cluster_run
from tests.analysis.synthetic_runs import as_older

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return cluster_run(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def results(run):
    return summarize_run(run)


@pytest.fixture(scope="module")
def reading(run):
    return CachedReading(CachedRun(run))


def measured(reading, what, **options):
    return {case.name: case for case in find_quantity(what).measure(QuantityRequest(reading, **options))}


def by_name(rows):
    return {each.name: each for each in rows}


def test_a_summary_follows_its_schema_and_is_read_again(run, results):
    schema = json.loads((ROOT / "docs/reference/summary.schema.json").read_text())
    Draft202012Validator(schema).validate(json.loads(json.dumps(results.record(), allow_nan=False)))
    run.write_summary(results.record())
    assert stored_or_new(run) == results


def test_iterations_are_pooled_over_all_jobs_and_repetitions(results):
    pooled = by_name(results.pooled)
    assert {each.count for each in pooled.values()} == {4 * 7 * 100}
    for name, slowed in SLOWED.items():
        assert pooled[name].slowed.mean.value == pytest.approx(slowed, abs=0.02)
        assert pooled[name].over_ideal is None if name == "ideal" else pooled[name].over_ideal.value > 1
    assert pooled["ideal"].slowed.p99.value == pytest.approx(1, abs=1e-6)


def test_jobs_that_swaps_move_are_counted_by_the_hour(run, reading):
    ends_s = [
        max(
            allocation["ends_s"]
            for allocation in json.loads((run.path / "trials" / each["trial"] / "timeline.json").read_text())["stints"]
        )
        for each in run.trials()
        if each["variant"] == "th-cassini"
    ]
    found = measured(reading, "jobs that swaps move an hour")
    assert found["th-cassini"].value == pytest.approx(np.mean([2 * 3600 / each for each in ends_s]))
    assert found["themis"].value == 0


def test_moves_of_a_window_are_counted_by_the_hours_of_the_trace_before_it_too(run):
    trial = next(cell for cell in read_clusters(run) if cell.variant == "th-cassini").first
    cluster = load_experiment("cluster-slices").cells[0].spec.cluster
    window = replace(trial, spec=trial.spec.model_copy(update={"cluster": cluster}))
    end_s = max(allocation.ends_s for allocation in trial.timeline.allocations)
    assert window.window_start_s == 300
    assert window.migrations_an_hour == pytest.approx(2 * 3600 / (300 + end_s))


def test_cassini_variants_are_compared_with_the_scheduler_they_extend(results):
    pooled = by_name(results.pooled)
    assert {name: each.baseline for name, each in pooled.items()} == {
        "themis": None, "th-cassini": "themis", "pollux": "themis", "po-cassini": "pollux", "random": "themis",
        "ideal": "themis",
    }  # fmt: skip
    assert pooled["th-cassini"].speedup_mean.value == pytest.approx(1.6 / 1.2, abs=0.02)
    assert pooled["random"].speedup_mean.value == pytest.approx(1.6 / 2.0, abs=0.02)
    assert pooled["th-cassini"].speedup_slowed.value == pytest.approx(1.6 / 1.2, abs=0.02)
    assert pooled["th-cassini"].speedup_p99.value > pooled["th-cassini"].speedup_mean.value


def test_paired_repetitions_give_narrower_intervals_than_unpaired(run):
    cells = {cell.variant: cell for cell in read_clusters(run)}
    slow, fast = cells["themis"].times_ms, cells["th-cassini"].times_ms
    value, (low, high) = paired_ratio(list(zip(slow, fast, strict=True)), np.mean)
    apart, (lower, higher) = ratio(estimate(slow, np.mean), estimate(fast, np.mean))
    assert value == pytest.approx(apart)
    assert lower < low < value < high < higher


def test_quantities_are_those_of_the_study(reading, results):
    pooled = by_name(results.pooled)
    gains = measured(reading, "speedup of mean iteration time over all jobs", of="th-cassini", over="themis")
    assert gains["th-cassini"].value == pooled["th-cassini"].speedup_mean.value
    assert gains["th-cassini"].ci95 == pooled["th-cassini"].speedup_mean.ci95
    tails = measured(reading, "speedup of 99th percentile iteration time over all jobs", of="th-cassini", over="themis")
    assert tails["th-cassini"].value == pooled["th-cassini"].speedup_p99.value
    slowed = measured(reading, "mean iteration time over a dedicated cluster's")
    assert {name: case.value for name, case in slowed.items()} == {
        name: each.slowed.mean.value for name, each in pooled.items()
    }
    histories = by_name(results.lives)
    for what, field in (
        ("mean job completion time", "completion_mean_s"),
        ("mean queueing delay", "queueing_mean_s"),
        ("worst finish-time fairness", "fairness_worst"),
    ):
        found = measured(reading, what, of="random")["random"]
        assert found.value == pytest.approx(getattr(histories["random"], field).value)


def test_gpus_compute_for_a_larger_share_of_time_if_jobs_are_slowed_down_less(reading):
    found = measured(reading, "GPU utilization of jobs with traffic")
    assert found["ideal"].value == pytest.approx(100 * JOB.profile.compute_ms / JOB.profile.alone_ms)
    assert found["themis"].value == pytest.approx(found["ideal"].value / SLOWED["themis"], rel=0.05)
    gain = measured(reading, "gain of GPU utilization of jobs with traffic", of="ideal", over="themis")["ideal"]
    assert gain.value == pytest.approx(found["ideal"].value / found["themis"].value)
    assert gain.ci95 is not None


def test_jobs_that_wait_are_counted_and_in_no_mean(results):
    histories = by_name(results.lives)["themis"]
    assert (histories.jobs, histories.waiting, histories.unfinished) == (32, 4, 0)
    assert histories.queueing_mean_s.value == 1
    assert histories.moves.value == pytest.approx(1 / 8)
    assert histories.fairness_worst.value > histories.fairness_mean.value > 1.5
    assert histories.completion_p99_s is None
    assert by_name(results.lives)["th-cassini"].score.value == pytest.approx(0.9)


def test_marks_are_reported_by_model(reading, results):
    of = {(each.name, each.model): each.marks.value for each in results.models}
    assert of.keys() == {(name, model) for name in SLOWED for model in MODELS}
    for model in MODELS:
        assert of["ideal", model] == 0
        assert of["random", model] > of["themis", model] > of["th-cassini", model] > 0
    found = measured(reading, "fewer ECN marks per iteration of a model", of="th-cassini", over="themis")
    case = found["th-cassini, DLRM"]
    assert case.properties["model"] == "DLRM"
    assert case.value == pytest.approx(of["themis", "DLRM"] / of["th-cassini", "DLRM"])
    none_left = measured(reading, "fewer ECN marks per iteration of a model", of="ideal", over="themis")
    assert {each.value for each in none_left.values()} == {np.inf}


def test_unmeasured_cluster_figures_are_none(tmp_path):
    run = cluster_run(tmp_path, repetitions=1, iterations=20, marks=False)
    results = summarize_run(run)
    reading = CachedReading(CachedRun(run))
    assert all(each.marks is None for each in results.models)
    assert measured(reading, "fewer ECN marks per iteration of a model", of="th-cassini", over="themis") == {}
    assert measured(reading, "speedup of 99th percentile iteration time over all jobs", over="themis") == {}
    (themis, *_) = results.pooled
    assert (themis.times_ms.p99, themis.times_ms.mean.ci95) == (None, None)
    cells = read_clusters(run)
    assert figures.draw_marks(cells, dict.fromkeys(SLOWED, "#000000")) is None


def test_the_screen_is_80_columns_wide(results):
    console = Console(width=80, file=StringIO())
    console.print(terminal_report(results))
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert not any("…" in line for line in lines)


def test_the_page_has_every_figure(run, results):
    run.write_summary(results.record())
    text = write_report(run).read_text()
    for words in (
        "Cumulative distributions of all iteration times",
        "Iteration times over time",
        "Jobs by host over time",
        "Completion, queueing and fairness of jobs",
        "Compatibility scores of decisions",
        "ECN marks per iteration, by model",
        "Use of the busiest links over time",
    ):
        assert f'alt="{words}"' in text


def test_figures_of_many_iterations_draw_some_and_say_so(run, monkeypatch):
    cells = read_clusters(run)
    assert figures.describe_decimation(cells) == ""
    points = cells[0].first.points
    drawn = csv_of(figures.draw_events(cells[:1], figures.model_looks(cells)))
    assert drawn.count("\n") - 1 == len(points.times_ms)
    monkeypatch.setattr(figures, "DOTS", 100)
    fewer = csv_of(figures.draw_events(cells[:1], figures.model_looks(cells)))
    assert figures.describe_decimation(cells) == "Every 7th iteration of each model is drawn, of up to 700."
    assert len(MODELS) <= fewer.count("\n") - 1 <= 100 + len(MODELS)


def test_ports_of_some_trials_are_those_of_all_trials(run):
    trial = read_clusters(run)[0].first.key
    everything, some = ports(run, "tx_bytes"), ports(run, "tx_bytes", (trial,))
    assert some.keys() == {place for place in everything if place.trial == trial} != everything.keys()
    assert all(each.total_gain == everything[place].total_gain for place, each in some.items())
    assert ports(run, "tx_bytes", ()) == {}


def test_every_scheduler_of_an_experiment_has_a_color_of_its_own():
    schedulers = list(load_experiment("cluster-poisson").factors["variant"])
    assert len(schedulers) == len(set(variant_colours(schedulers).values())) == 11


def test_cells_that_differ_in_other_levels_are_drawn_as_one_variant(run):
    alone = replace(read_clusters(run)[0], id=CellId({"cluster.slice.from_s": 300}))
    drawn = csv_of(figures.draw_distributions([alone], [], {"base": "#0072b2"}))
    assert {row.split(",")[1] for row in drawn.splitlines()[1:]} == {"base"}


def test_a_timeline_of_schema_1_gives_the_same_results(tmp_path):
    run = as_older(cluster_run(tmp_path, repetitions=1, iterations=5))
    results = summarize_run(run)
    for path in run.path.glob("trials/*/timeline.json"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "schema": 1}))
    assert summarize_run(run) == results


def test_a_timeline_that_cannot_be_read_is_named(tmp_path):
    run = as_older(cluster_run(tmp_path, repetitions=1, iterations=5))
    path = next(run.path.glob("trials/*/timeline.json"))
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema": 3}))
    with pytest.raises(StoreError, match="timeline.json: schema: Input should be 1 or 2"):
        read_clusters(run)
