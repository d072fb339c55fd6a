# SPDX-License-Identifier: Apache-2.0
"""Runs over loads: their sweeps in summary.json and on the screen, and what they say of Salamy."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from jsonschema import Draft202012Validator
from rich.console import Console

from analysis.quantities import CachedReading, QuantityRequest, find_quantity
from analysis.quantities.load_sweeps.sweep_levels import interpolate, levels, ratio_at_equal_load, unloaded_level
from analysis.reading.cells import CellId, experiment_of
from analysis.reading.cross_traffic.load_sweep_data import (
    JobUnderLoad,
    cross_traffic_outcomes,
    jobs_under_load,
    sent_loads,
)
from analysis.reading.cross_traffic.load_sweeps import JobSweep, job_sweeps, sweep_names
from analysis.reports.about import provenance
from analysis.reports.report import terminal_report
from analysis.reports.summary import stored_or_new, summarize_run
from analysis.statistics.intervals import exact
from analysis.studies import study_of
from analysis.studies.load_sweep import tables
from analysis.studies.load_sweep.figures import by_kind, by_model
from roundabout.spec import load_experiment
from roundabout.store.files import write_json
from tests.analysis.run_verdicts import judge_run
from tests.analysis.sweeps.sweep_runs import ROOT, experiment, mean_s, sweep_run
from tests.analysis.synthetic_runs import as_older

pytestmark = pytest.mark.unit

SCHEMA = json.loads((Path(__file__).parents[3] / "docs/reference/summary.schema.json").read_text())
LOADS = [0, 6, 11, 14, 16, 18, 20]
KINDS = "  variant: {consistent: {}, burst: {cross_traffic: {cross: {kind: burst}}}}"


def validate(summary):
    Draft202012Validator.check_schema(SCHEMA)
    Draft202012Validator(SCHEMA).validate(json.loads(json.dumps(summary, allow_nan=False)))


def shown(results):
    console = Console(width=80, color_system=None)
    with console.capture() as captured:
        console.print(terminal_report(results))
    return captured.get()


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """VGG-16 under consistent traffic over RDMA, as in Figure 3-3; one trial of 18 Gbit/s is invalid."""
    folder = tmp_path_factory.mktemp("sweep")
    return sweep_run(folder, experiment(folder, loads=LOADS), spoilt={(18, 2)}, resent={(20, 1), (20, 3)})


@pytest.fixture(scope="module")
def results(sweep):
    return summarize_run(sweep)


@pytest.fixture
def summary(results):
    return results.record()


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """The same model over TCP under two kinds of traffic."""
    folder = tmp_path_factory.mktemp("pair")
    planned = experiment(
        folder, loads=[0, 8, 14, 20], profile="resnet50-ring3", transport="cubic", more=KINDS, iterations=250
    )
    return sweep_run(folder, planned)


def test_a_study_of_loads_is_recognized_by_what_varies(run, sweep):
    assert study_of(experiment_of(sweep)).kind == "load-sweep"
    assert study_of(experiment_of(run)).kind == "interleaving"
    assert jobs_under_load(run) == []


def test_any_factor_may_change_the_load(tmp_path):
    factors = "  intensity: {none: {}, some: {load_gbps: 11}, much: {load_gbps: 18}}"
    planned = experiment(tmp_path, loads=[0], repetitions=1, more=factors)
    text = (tmp_path / "toy-sweep.yaml").read_text().replace("  load_gbps: [0]\n", "")
    (tmp_path / "toy-sweep.yaml").write_text(f"{text}\nload_gbps: 0\nstudy: {{kind: load-sweep, over: intensity}}\n")
    planned = load_experiment(tmp_path / "toy-sweep.yaml", ROOT)
    results = summarize_run(sweep_run(tmp_path, planned))
    validate(results.record())
    (found,) = results.sweeps
    assert [(level.asked_gbps, level.times_no_load is None) for level in found.levels] == [
        (0.0, False), (11.0, False), (18.0, False)
    ]  # fmt: skip
    assert results.study.over == "intensity"


def test_the_load_is_the_payload_that_was_sent(sweep):
    (loaded,) = jobs_under_load(sweep)
    assert list(loaded.levels) == LOADS
    assert {requested: len(each) for requested, each in loaded.levels.items()} == dict.fromkeys(LOADS, 4) | {18: 3}
    trials = {record["trial"]: record for record in sweep.trials()}
    rows = {
        (row.asked_gbps, trials[row.trial]["repetition"]): row.achieved_gbps for row in cross_traffic_outcomes(sweep)
    }
    assert len(rows) == 4 * len(LOADS) - 5  # the level without load has no cross traffic
    for requested, each in loaded.levels.items():
        achieved = [value for (level, _), value in sorted(rows.items()) if level == requested] or [0.0] * 4
        assert [load for load, _ in each] == pytest.approx(achieved, abs=0.01)


def test_receivers_give_the_load_if_counters_are_damaged(tmp_path):
    run = as_older(sweep_run(tmp_path, experiment(tmp_path, loads=[0, 12], repetitions=2)))
    whole = sent_loads(run)
    changes = {"reset": lambda column: [column[0], column[1], 0, *column[3:]], "short": lambda column: column[:2]}
    for (trial, load), change in zip(whole.items(), changes.values(), strict=True):
        path = run.path / "trials" / trial / "counters.parquet"
        table = pq.read_table(path)
        other, sender = (table.filter(pc.field("host") != "s2"), table.filter(pc.field("host") == "s2"))
        kept = sender.slice(0, len(change(sender["tx_bytes"].to_pylist())))
        place = kept.schema.get_field_index("tx_bytes")
        changed = pa.array(change(sender["tx_bytes"].to_pylist()), pa.int64())
        pq.write_table(pa.concat_tables([other, kept.set_column(place, kept.schema.field(place), changed)]), path)
        (achieved,) = [row.achieved_gbps for row in cross_traffic_outcomes(run) if row.trial == trial]
        assert sent_loads(run)[trial] == achieved
        assert load == pytest.approx(achieved, abs=0.01)
    path = run.path / "trials" / trial / "cross_traffic.parquet"
    table = pq.read_table(path)
    place = table.schema.get_field_index("achieved_gbps")
    pq.write_table(table.set_column(place, table.schema.field(place), pa.array([None], pa.float64())), path)
    assert list(sent_loads(run)) == [each for each in whole if each != trial]
    (loaded,) = jobs_under_load(run)
    assert {requested: len(each) for requested, each in loaded.levels.items()} == {0: 2, 12: 1}


def test_levels_whose_loads_came_out_equal_are_one(sweep):
    (loaded,) = jobs_under_load(sweep)
    loaded.levels = {
        requested: [(9.5, times) for _, times in each] for requested, each in list(loaded.levels.items())[:2]
    }
    (level,) = loaded.sweep.levels
    assert level.load_gbps == 9.5
    assert len(level.repetitions_s) == 8


def test_a_summary_of_a_sweep_follows_its_schema(summary):
    validate(summary)


def test_levels_hold_the_figures_of_the_cells(summary):
    (entry,) = summary["sweeps"]
    assert entry["name"] == "VGG-16, consistent, RDMA"
    assert [level["asked_gbps"] for level in entry["levels"]] == LOADS
    assert [level["repetitions"] for level in entry["levels"]] == [4] * 5 + [3, 4]
    for level, cell in zip(entry["levels"], summary["cells"], strict=True):
        assert level["mean_s"] == pytest.approx(cell["mean_ms"] / 1e3)
        assert (level["p99_s"], level["count"]) == (None, cell["count"])
        assert level["max_s"] == pytest.approx(cell["max_ms"] / 1e3)
    assert entry["levels"][0]["times_no_load"] == 1
    assert entry["levels"][-1]["mean_ci95_s"][0] < entry["levels"][-1]["mean_s"] < entry["levels"][-1]["mean_ci95_s"][1]
    assert entry["levels"][-2]["mean_ci95_s"] is None


def test_fluid_limits_rise_with_the_load(summary):
    (entry,) = summary["sweeps"]
    fluid = [level["fluid_s"] for level in entry["levels"]]
    assert fluid[0] == pytest.approx(0.37)
    assert fluid == sorted(fluid)
    assert fluid[-1] < entry["levels"][-1]["mean_s"]
    assert summary["cells"][0]["fluid"]["alone_ms"] == pytest.approx(370)
    assert summary["cells"][-1]["fluid"]["alone_ms"] == pytest.approx(fluid[-1] * 1e3, rel=0.05)


def test_fit_and_congestion_are_those_of_the_toy(summary):
    (entry,) = summary["sweeps"]
    assert entry["fit"]["r_squared"]["log"] > 0.99
    assert entry["fit"]["chosen_by"][0]["miss"] == min(each["miss"] for each in entry["fit"]["chosen_by"])
    assert len(entry["fit"]["chosen_by"]) == 7
    assert 5 < entry["congestion"]["load_gbps"] < 18
    assert 0.3 < entry["congestion"]["linear_slope"] < 0.5
    assert entry["congestion"]["theory_mb"] == entry["data_mb"] == pytest.approx(737.9, abs=0.1)
    assert entry["congestion"]["above_theory_percent"] > 0
    assert entry["most_congested"]["delta_gbps"] == pytest.approx(
        entry["most_congested"]["available_gbps"] - entry["most_congested"]["required_gbps"]
    )
    assert entry["spare_gbps"] > 0


def test_salamys_printed_figures_stand_beside_the_measured_ones(summary, pair):
    (entry,) = summary["sweeps"]
    assert entry["paper"]["observed"]["figure"] == "3-3"
    assert entry["paper"]["observed"]["congestion_gbps"] == 15.7
    assert entry["paper"]["observed"]["above_theory_percent"] == pytest.approx(34, abs=0.5)
    assert entry["paper"]["fit"] is None  # none was printed for VGG-16 under consistent traffic
    consistent, burst = summarize_run(pair).record()["sweeps"]
    assert consistent["paper"]["observed"] is None
    assert consistent["paper"]["fit"]["b"] == 3.311
    assert consistent["paper"]["ours_with_its_n"]["n"] == {"value": 0.5, "ci95": None}
    assert burst["paper"]["observed"]["figure"] == "3-4"


@pytest.mark.parametrize(
    ("what", "of_the_link"),
    [("bandwidth unused at the heaviest load", lambda entry: entry["most_congested"]["delta_gbps"]),
     ("bandwidth unused when saturated", lambda entry: entry["spare_gbps"]),
     ("data at the congestion point above theory", lambda entry: entry["congestion"]["above_theory_percent"]),
     ("load at the congestion point", lambda entry: entry["congestion"]["crossing_gbps"])],
)  # fmt: skip
def test_figures_as_salamy_takes_them_use_25_gbps(sweep, summary, what, of_the_link):
    (entry,) = summary["sweeps"]
    ours, as_printed = ({**entry, **own} for own in ({}, entry["paper"]["ours_as_printed"]))
    for name, own in ((what, ours), (f"{what} as Salamy takes it", as_printed)):
        (found,) = find_quantity(name).measure(QuantityRequest(CachedReading(sweep)))
        assert found.value == pytest.approx(of_the_link(own))
    available_gbps = [own["most_congested"]["available_gbps"] for own in (ours, as_printed)]
    assert np.diff(available_gbps) == pytest.approx([25 - entry["link_gbps"]])
    assert of_the_link(as_printed) >= of_the_link(ours)


def test_with_four_levels_fewer_models_are_tried(pair):
    summary = summarize_run(pair).record()
    validate(summary)
    for entry in summary["sweeps"]:
        assert len(entry["fit"]["chosen_by"]) == 3
        assert 8 < entry["congestion"]["crossing_gbps"] < 20


def test_the_table_of_a_sweep_fits_80_columns(results):
    text = shown(results)
    assert max(map(len, text.splitlines())) <= 80
    for words in ("VGG-16, consistent, RDMA", "payload", "R² ", "% above theory", "Salamy: at 15.7 Gbit/s"):
        assert words in text
    assert "speed-up" not in text


def test_missing_fits_and_points_give_their_reason(tmp_path):
    run = sweep_run(tmp_path, experiment(tmp_path, loads=[0, 14, 20], repetitions=1), spoilt={(0, 1)})
    results = summarize_run(run)
    summary = results.record()
    validate(summary)
    (entry,) = summary["sweeps"]
    assert entry["fit"] is None
    assert "found 2 levels" in entry["why_no_fit"]
    assert entry["levels"][0]["times_no_load"] is None
    assert "none: found 2 levels" in shown(results)


def test_without_a_valid_trial_there_is_no_sweep(tmp_path):
    run = sweep_run(tmp_path, experiment(tmp_path, loads=[0, 20], repetitions=1), spoilt={(0, 1), (20, 1)})
    results = summarize_run(run)
    validate(results.record())
    assert results.sweeps == ()
    assert "no valid trial" in shown(results)


def test_a_load_that_takes_all_leaves_no_fluid_limit(tmp_path):
    run = sweep_run(tmp_path, experiment(tmp_path, loads=[0, 23.5], repetitions=1), spoilt={(23.5, 2)})
    summary = summarize_run(run).record()
    validate(summary)
    assert summary["cells"][1]["fluid"]["fair_ms"] is None


def test_a_summary_of_another_schema_is_made_anew(tmp_path):
    run = sweep_run(tmp_path, experiment(tmp_path, loads=[0, 20], repetitions=1))
    new = summarize_run(run).record()
    write_json(run.path / "summary.json", new | {"schema": 1, "sweeps": []})
    assert len(stored_or_new(run).sweeps) == 1
    run.write_summary({**new, "sweeps": []})
    assert stored_or_new(run).sweeps == ()


def test_a_stored_summary_equals_the_computed_one(sweep, results):
    sweep.write_summary(results.record())
    assert stored_or_new(sweep) == results


def test_sweeps_come_in_the_order_in_which_salamy_has_them(pair):
    found = summarize_run(pair).sweeps
    assert [sweep.name for sweep in found] == ["ResNet-50, consistent, TCP", "ResNet-50, burst, TCP"]
    assert list(by_kind(found)) == ["consistent, TCP", "burst, TCP"]
    assert list(by_model(found)) == ["ResNet-50"]
    assert found[0].fluid_line.loads_gbps[0] == 0
    assert (np.diff(found[0].fluid_line.times_s) >= 0).all()
    consistent, _ = jobs_under_load(pair)
    assert len(consistent.times_s(20)) == 1000
    assert len(consistent.times_s(11)) == 0


def test_transports_are_named_once_a_variant(pair):
    text = provenance(pair)
    assert text.count("consistent: cubic") == 1


def claims(summary):
    """Verdicts on what is claimed in words, by its beginning."""
    found = [each for each in summary["expectations"] if each["kind"] == "claim"]
    assert len(found) == 11
    return {each["claim"].partition(" (")[0]: each for each in found}


def test_claims_are_judged_by_what_was_measured(pair):
    agrees = {claim: each["verdict"] for claim, each in claims(summarize_run(pair).record()).items()}
    assert agrees["At 80 % load burst traffic is the worse one"] == "pass"
    assert agrees["At 30 % load consistent and burst traffic hardly differ"] == "pass"
    assert agrees["Once saturated, web-search traffic leaves more of the link unused than iperf does"] == "not measured"


def p99(times_s):
    return np.quantile(times_s, 0.99)


def by_hand(study, load_gbps, figure):
    levels = sorted((float(np.mean([load for load, _ in each])), each) for each in study.loaded.levels.values())
    figures = [figure(np.concatenate([times for _, times in each])) for _, each in levels]
    return np.exp(np.interp(load_gbps, [load for load, _ in levels], np.log(figures)))


def test_kinds_of_traffic_are_compared_at_equal_measured_load(pair):
    (found,) = find_quantity("burst over consistent traffic, 99 % tail at 80 % of what the link carries").measure(
        QuantityRequest(CachedReading(pair))
    )
    burst, consistent = sorted(job_sweeps(pair), key=lambda each: each.loaded.traffic)
    ratio = by_hand(burst, 18.8, p99) / by_hand(consistent, 18.8, p99)
    assert found.value == pytest.approx(ratio)
    assert found.properties["load"] == "18.8 Gbit/s"
    assert found.ci95[0] < found.value < found.ci95[1]
    (found,) = find_quantity("burst over consistent traffic, 99 % tail at 80 % load").measure(
        QuantityRequest(CachedReading(pair))
    )
    equal_gbps = min(20, *(max(np.mean([load for load, _ in level]) for level in each.loaded.levels.values())
                           for each in (burst, consistent)))  # fmt: skip
    assert found.properties["load"] == f"{equal_gbps:.1f} Gbit/s"
    assert found.value == pytest.approx(by_hand(burst, equal_gbps, p99) / by_hand(consistent, equal_gbps, p99))


def test_kinds_whose_loads_do_not_meet_are_not_compared(pair):
    burst, consistent = job_sweeps(pair)
    found = ratio_at_equal_load(burst, consistent, 20, lambda level: level.mean_s)
    assert found is not None
    assert found[0] == pytest.approx(20, abs=0.5)
    assert ratio_at_equal_load(burst, consistent, 26, lambda level: level.mean_s) is None
    assert ratio_at_equal_load(burst, consistent, 20, lambda level: None) is None


def test_interpolation_is_linear_in_logarithms():
    levels = [(10.0, (1.0, (0.5, 2.0))), (20.0, (4.0, (2.0, 8.0)))]
    value, ends = interpolate(15.0, levels)
    assert (value, *ends) == pytest.approx((2, 1, 4))
    assert interpolate(15.0, [*levels, (30.0, (4.0, None))])[1] is None


def test_claims_of_a_run_say_on_which_basis(summary):
    (above,) = [each for name, each in claims(summary).items() if name.startswith("At the congestion point")]
    assert (above["verdict"], above["basis"]) == ("inconclusive", "by construction")  # three repetitions at 18 Gbit/s
    assert above["rows"] == ["C Table 3.4, 3.5", "C Fig A-1"]  # of consistent traffic


def test_a_claim_that_does_not_hold_names_where(sweep, monkeypatch):
    monkeypatch.setattr("analysis.quantities.load_sweeps.congestion.excess_percent", lambda *_: exact(-3.0))
    (found,) = [each for each in judge_run(sweep) if "congestion point more" in (each.claim or "")]
    assert found.verdict == "fail"
    assert found.found == "VGG-16, consistent, RDMA -3 %"  # shown once, since there is no other case


def test_tails_of_a_few_iterations_are_not_judged(tmp_path):
    few = sweep_run(tmp_path, experiment(tmp_path, loads=[0, 8, 20], iterations=12, repetitions=4))
    (tails,) = [each for name, each in claims(summarize_run(few).record()).items() if "99 % tail lies" in name]
    assert tails["verdict"] == "not measured"


def test_attempts_and_retransmissions_are_counted_by_level(results):
    found = {each.levels["load_gbps"]: (each.made, each.invalid, each.resent) for each in results.attempts}
    assert found == dict.fromkeys(LOADS, (4, 0, 0)) | {18: (4, 1, 0), 20: (6, 2, 2)}
    (section,) = tables.attempt_table(results.attempts).sections
    assert [[cell.value for cell in row] for row in section.rows] == [
        ["load_gbps 18", 4, 1, 0, 0], ["load_gbps 20", 6, 2, 0, 2]
    ]  # fmt: skip
    assert "sent again" in shown(results)


def test_tables_mark_sweeps_with_disturbed_levels(results):
    (sweep,) = results.sweeps
    levels = tuple(
        each.model_copy(update={"disturbance": 0.2 if each.asked_gbps == 20 else None}) for each in sweep.levels
    )
    disturbed = sweep.model_copy(update={"levels": levels})
    for make in (tables.demand_table, tables.bandwidth_table, tables.fit_table, tables.prediction_table):
        names = [make([each]).sections[0].rows[0][0].value for each in (sweep, disturbed)]
        assert names[1] == f"{names[0]} (disturbed)"
    assert tables.spare_table([disturbed]).sections[0].rows[0][1].note.startswith("disturbed")
    notes = [row[2].note for row in tables.level_table(disturbed).sections[0].rows]
    assert ["disturbed, ±20%" in note for note in notes] == [each.asked_gbps == 20 for each in levels]
    assert tables.describe_disturbed_levels(disturbed) == "1 of 7 levels, and so fit and congestion point"
    assert tables.describe_disturbed_levels(sweep) == ""


def test_a_sweep_without_invalid_attempts_says_so(tmp_path):
    run = sweep_run(tmp_path, experiment(tmp_path, loads=[0, 8], repetitions=1))
    results = summarize_run(run)
    assert tables.attempt_table(results.attempts).empty == "No attempt of 2 was invalid."
    assert "sent again" not in shown(results)


def test_tails_are_p99_from_1000_iterations_on_else_the_longest(tmp_path, results):
    few = tables.level_table(results.sweeps[0])
    assert [row[3].note for row in few.sections[0].rows] == ["max of 80"] * 5 + ["max of 60", "max of 80"]
    planned = experiment(tmp_path, loads=[0, 8], profile="resnet50-ring3", iterations=250)
    many = tables.level_table(summarize_run(sweep_run(tmp_path, planned)).sweeps[0])
    for row in many.sections[0].rows:
        assert row[3].interval[0] < row[3].value < row[3].interval[1]
        assert row[3].note == ""


def test_the_toy_slows_down_as_it_should(sweep):
    (loaded,) = jobs_under_load(sweep)
    assert mean_s(loaded.job, "burst", 20) > mean_s(loaded.job, "consistent", 20) > loaded.fluid_s(20)


def test_sweeps_alike_are_distinguished_by_one_more_word():
    spec = load_experiment("bursts-resnet").cells[0].spec
    wanted = [(traffic, cause) for traffic in ("consistent", "burst") for cause in ("as-printed", "no-ecn")]
    loaded = [
        JobUnderLoad(traffic, "dnn", CellId({"variant": traffic, "cause": cause}), spec, traffic, 23.5)
        for traffic, cause in wanted
    ]
    assert sweep_names(loaded[1:3]) == ["ResNet-50, consistent, TCP", "ResNet-50, burst, TCP"]
    assert sweep_names(loaded) == [f"ResNet-50, {traffic}, TCP, cause {cause}" for traffic, cause in wanted]
    again = replace(loaded[0], setting=CellId({"variant": "late", "cause": "no-ecn"}), variant="late")
    assert sweep_names([loaded[0], again]) == [
        "ResNet-50, consistent, TCP, consistent",
        "ResNet-50, consistent, TCP, late",
    ]
    everything = sweep_names([loaded[0], loaded[1], again])
    assert everything[0] == "ResNet-50, consistent, TCP, consistent · cause as-printed"


@pytest.mark.parametrize(("is_repeatable", "exact"), [(True, True), (False, False)])
def test_a_repeatable_level_without_load_is_exact_in_one_repetition(is_repeatable, exact):
    loaded = JobUnderLoad(
        "base", "j1", CellId({}), None, "consistent", 25, is_repeatable,
        levels={0: [(0.0, np.array([0.84]))], 8: [(8.1, np.array([1.2]))]},
    )  # fmt: skip
    study = JobSweep(loaded, "base", None, "", None, "", None, "")
    alone, under_load = levels(study)
    assert unloaded_level(study) == alone
    assert alone.mean_s == (0.84, (0.84, 0.84) if exact else None)
    assert under_load.mean_s == (1.2, None)
