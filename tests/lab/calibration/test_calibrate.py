# SPDX-License-Identifier: Apache-2.0
"""`roundabout calibrate` reads its candidates strictly, and what it writes can be read."""

import pytest

from roundabout.cli.lab import calibrate
from roundabout.cli.main import main
from roundabout.testbeds.lab.calibration.calibration import Calibration, Derivation, load_calibration, store_calibration
from roundabout.testbeds.lab.checks.fidelity import lab_fidelity

pytestmark = pytest.mark.unit


def test_what_is_stored_is_what_was_found(tmp_path):
    found = load_calibration().model_copy(update={"version": 7, "timer_scale": 3.5})
    store_calibration(found, tmp_path / "calibration.yaml")
    assert load_calibration(tmp_path / "calibration.yaml") == found


def test_where_constants_are_from_is_stored_with_them_and_said_of_them(tmp_path):
    derived = Derivation(run="20261122T173504Z-61bb", hash="5" * 64, misfit=0.731, targets={"drift of fair": 0.01})
    kept = load_calibration().model_copy(update={"derived_from": None})
    found = kept.model_copy(update={"derived_from": derived})
    store_calibration(found, tmp_path / "calibration.yaml")
    assert load_calibration(tmp_path / "calibration.yaml") == found
    assert found.for_dilation(100, 10).derived_from is None

    told = lab_fidelity(found, 1, ["published sets"])
    assert told.stamp.endswith("times as they are, constants of a dilated lab")
    assert sum("those of a dilated lab (run 20261122T173504Z-61bb, misfit 0.73)" in line for line in told.cannot) == 1
    assert not any("calibrated for that" in line for line in told.cannot)
    assert any("calibrated for that" in line for line in lab_fidelity(kept, 1, ["published sets"]).cannot)


def test_a_lab_in_which_time_is_stretched_says_what_a_burst_stands_for():
    told = lab_fidelity(load_calibration().for_dilation(100, 17.4), 17.4, ())
    assert sum("three packets here, which stand for 25 kB" in line for line in told.cannot) == 1


def test_a_run_or_candidates(capsys):
    assert main(["calibrate", "kept", "--from", "last"]) == 2
    assert "found --from and the candidates kept, expected one of them" in capsys.readouterr().err
    for option in ("--tries", "--seed"):
        assert main(["calibrate", option, "3"]) == 2
        assert "found --tries or --seed without --from" in capsys.readouterr().err


def test_what_is_further_off_than_it_may_be_is_not_kept(monkeypatch, capsys):
    kept: list[Calibration] = []
    monkeypatch.setattr(calibrate, "store_calibration", kept.append)
    for off, version in ((1.01, None), (1.0, load_calibration().version + 1)):
        found = ("one", load_calibration(), off)
        monkeypatch.setattr(calibrate, "_best_candidate", lambda *_, found=found: found)
        assert main(["calibrate", "--write"]) == (0 if version else 1)
        assert [each.version for each in kept] == ([version] if version else [])
        told = capsys.readouterr()
        assert (f"is now version {version}: one" in told.out) if version else ("off by 1.01 times" in told.err)


def test_an_unknown_candidate_is_answered_with_the_known_ones(capsys):
    assert main(["calibrate", "nonsense"]) == 1
    complaint = capsys.readouterr().err
    assert "found no candidate nonsense" in complaint
    assert "kept, CNP gap between both T" in complaint


WRONG_CANDIDATES = (
    ("a: {ecn: {pmax: 2}}", ":1: a.ecn.pmax: found 2, expected at most 1"),
    ("a: {kmin: 1}", ":1: a.kmin: found the unknown field 'kmin'"),
    ("- a", "found a list, expected a mapping"),
    ("a: {version: 2}\na: {version: 3}", ":2: a: found the key 'a' a second time (first in line 1)"),
    ("a: [version]", ":1: a: found a list of 1, expected an overlay on calibration.yaml"),
    ("a: {timer_scale: .inf}", "a.timer_scale: found '.inf', expected a number"),
    ("a: {timer_scale: 1e999}", "a.timer_scale: found '1e999', expected a number of ordinary size"),
)


def test_a_candidate_that_is_no_calibration_names_file_and_field(tmp_path, capsys):
    candidates = tmp_path / "candidates.yaml"
    for text, named in WRONG_CANDIDATES:
        candidates.write_text(text)
        assert main(["calibrate", "--candidates", str(candidates)]) == 2
        complaint = capsys.readouterr().err
        assert str(candidates) in complaint
        assert named in complaint
