# SPDX-License-Identifier: Apache-2.0
"""`roundabout calibrate` reads its candidates strictly, and what it writes can be read."""

from roundabout.cli.main import main
from roundabout.testbeds.lab.calibration import load_calibration, store_calibration


def test_what_is_stored_is_what_was_found(tmp_path):
    found = load_calibration().model_copy(update={"version": 7, "timer_scale": 3.5})
    store_calibration(found, tmp_path / "calibration.yaml")
    assert load_calibration(tmp_path / "calibration.yaml") == found


def test_an_unknown_candidate_is_answered_with_the_known_ones(capsys):
    assert main(["calibrate", "nonsense"]) == 1
    complaint = capsys.readouterr().err
    assert "found no candidate nonsense" in complaint
    assert "kept, CNP gap below both T" in complaint


def test_a_candidate_that_is_no_calibration_names_file_and_field(tmp_path, capsys):
    candidates = tmp_path / "candidates.yaml"
    for text, named in (("a: {ecn: {pmax: 2}}", "ecn.pmax"), ("a: {kmin: 1}", "kmin"), ("- a", "named overlays")):
        candidates.write_text(text)
        assert main(["calibrate", "--candidates", str(candidates)]) == 1
        complaint = capsys.readouterr().err
        assert str(candidates) in complaint
        assert named in complaint
