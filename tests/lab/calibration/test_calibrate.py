# SPDX-License-Identifier: Apache-2.0
"""What `roundabout calibrate` writes can be read, and constants that miss their targets are not written."""

import pytest

from roundabout.cli.lab import calibrate
from roundabout.cli.lab.calibrate import store_if_good
from roundabout.cli.main import main
from roundabout.testbeds.lab.calibration.calibration import Calibration, Derivation, load_calibration, store_calibration
from roundabout.testbeds.lab.checks.fidelity import lab_fidelity
from roundabout.testbeds.lab.errors import LabError

pytestmark = pytest.mark.unit


def test_a_stored_calibration_is_read_back(tmp_path):
    found = load_calibration().model_copy(update={"version": 7, "timer_scale": 3.5})
    store_calibration(found, tmp_path / "calibration.yaml")
    assert load_calibration(tmp_path / "calibration.yaml") == found


def test_a_calibrations_derivation_is_stored_and_reported(tmp_path):
    derived = Derivation(run="20261122T173504Z-61bb", hash="5" * 64, misfit=0.731, targets={"drift of fair": 0.01})
    kept = load_calibration().model_copy(update={"derived_from": None})
    found = kept.model_copy(update={"derived_from": derived})
    store_calibration(found, tmp_path / "calibration.yaml")
    assert load_calibration(tmp_path / "calibration.yaml") == found
    assert found.for_dilation(100, 10).derived_from is None

    fidelity = lab_fidelity(found, 1, ["published sets"])
    assert fidelity.stamp.endswith("times as they are, constants of a dilated lab")
    assert (
        sum("those of a dilated lab (run 20261122T173504Z-61bb, misfit 0.73)" in line for line in fidelity.cannot) == 1
    )
    assert not any("calibrated for that" in line for line in fidelity.cannot)
    assert any("calibrated for that" in line for line in lab_fidelity(kept, 1, ["published sets"]).cannot)


def test_a_lab_in_which_time_is_stretched_says_what_a_burst_stands_for():
    fidelity = lab_fidelity(load_calibration().for_dilation(100, 17.4), 17.4, ())
    assert sum("three packets here, which stand for 25 kB" in line for line in fidelity.cannot) == 1


def test_a_run_to_meet_is_required(capsys):
    assert main(["calibrate"]) == 2
    assert "Missing option '--from'" in capsys.readouterr().err


def test_constants_with_a_misfit_above_1_are_not_stored(monkeypatch):
    stored: list[Calibration] = []
    monkeypatch.setattr(calibrate, "store_calibration", stored.append)
    with pytest.raises(LabError, match=r"misfit of 1\.01; at most 1"):
        store_if_good(load_calibration(), 1.01)
    assert stored == []
    version = load_calibration().version + 1
    assert store_if_good(load_calibration(), 1.0) == version
    assert [each.version for each in stored] == [version]
