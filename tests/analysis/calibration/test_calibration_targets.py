# SPDX-License-Identifier: Apache-2.0
"""What a run with time stretched requires of a calibration, and how well another run meets it."""

import shutil

import pytest

from analysis.calibration.calibration_targets import TargetFit, compare_with_targets, targets_of, training_experiment
from roundabout.store import StoreError

pytestmark = pytest.mark.unit

ECN = {"Kmin_bytes": 1.0, "Kmax_bytes": 2.0, "Pmax": 1.0}


def stretched(run, dilation=17.4, change=lambda experiment: None):
    """The same run as one of a lab with time stretched, its experiment changed."""
    manifest = run.manifest
    change(manifest["experiment"])
    run.write_manifest({**manifest, "testbed": {**manifest["testbed"], "dilation": dilation}})
    return run


def test_targets_are_graded_figures_of_the_cells_in_which_jobs_meet(run):
    targets = {each.name: each for each in targets_of(run)}
    assert list(targets) == [
        "excess of fair",
        "drift of fair",
        "share j1/j2 of unfair",
        "speed-up of unfair",
        "marks of unfair over fair",
    ]
    assert targets["excess of fair"].value == pytest.approx(0, abs=0.02)
    assert targets["drift of fair"].value == pytest.approx(0, abs=0.02)
    assert 1.2 < targets["share j1/j2 of unfair"].value < 2.1
    assert targets["share j1/j2 of unfair"].allowed == pytest.approx(0.1 * targets["share j1/j2 of unfair"].value)
    assert 1.1 < targets["speed-up of unfair"].value < 1.3
    assert 0 < targets["marks of unfair over fair"].value < 1


def test_a_run_meets_its_own_targets(run):
    assert compare_with_targets(targets_of(run), run).misfit == 0


def test_a_misfit_counts_in_multiples_of_the_tolerance(run, make_run):
    slower = compare_with_targets(targets_of(run), make_run(repetitions=1, slowdown=1.5))
    assert slower.off["excess of fair"] == pytest.approx(
        (slower.found["excess of fair"] - targets_of(run)[0].value) / 0.02
    )
    assert slower.misfit > 1


def test_the_misfit_is_a_root_mean_square():
    assert TargetFit({}, {"a": 3.0, "b": -4.0}).misfit == pytest.approx(12.5**0.5)


def test_a_training_experiment_has_the_graded_variants_once(short_run):
    found = training_experiment(stretched(short_run))
    assert (found.name, found.repetitions, found.expect) == ("calibrate-unfair-vgg19", 1, ())
    assert [cell.variant for cell in found.cells] == ["fair", "unfair"]
    assert found.variants == ("fair", "unfair")
    assert found.trial_count == 2
    assert found.cells[0].spec.iterations == 50


@pytest.mark.parametrize("dilation", [1.0, None])
def test_an_undilated_run_is_refused(run, short_run, dilation):
    refused = run if dilation is None else stretched(short_run, dilation)
    with pytest.raises(StoreError, match="found a dilation of 1, expected a run with one above 1"):
        training_experiment(refused)


def test_a_run_whose_transport_is_dilated_more_than_jobs_is_refused(short_run):
    refused = stretched(short_run)
    manifest = refused.manifest
    manifest["testbed"]["identity"] = {"transport_dilation": 16.0}
    refused.write_manifest(manifest)
    with pytest.raises(StoreError, match="found a transport_dilation of 16, expected times stretched alike"):
        training_experiment(refused)


def several(experiment):
    for job in experiment["cells"][-1]["spec"]["jobs"].values():
        job["transport"]["ecn"] = ECN


def alone(experiment):
    for cell in experiment["cells"]:
        cell["spec"]["one_job_at_a_time"] = True


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            several,
            r"found hotnets22, Kmin_bytes=1.0 .* and hotnets22, Kmin_bytes=80000.0 .*, expected one set of param",
        ),
        (alone, "found no cell in which jobs meet, expected"),
    ],
)
def test_a_run_that_a_calibration_cannot_reproduce_is_refused(short_run, change, message):
    with pytest.raises(StoreError, match=message):
        training_experiment(stretched(short_run, change=change))


def test_a_run_without_a_valid_trial_of_a_target_is_refused(make_run):
    with pytest.raises(StoreError, match="found no valid trial of fair, expected one of each cell"):
        targets_of(make_run(repetitions=1, spoilt=[("fair", 1)]))


def test_a_cell_without_a_fair_one_is_named(short_run):
    def change(experiment):
        experiment["cells"] = [cell for cell in experiment["cells"] if cell["levels"]["variant"] != "fair"]

    for path in short_run.path.glob("trials/*/trial.json"):
        if '"variant": "fair"' in path.read_text():
            shutil.rmtree(path.parent)
    short_run.refresh_trials()
    with pytest.raises(StoreError, match="found no cell fair beside unfair"):
        targets_of(stretched(short_run, change=change))
