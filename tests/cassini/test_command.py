# SPDX-License-Identifier: Apache-2.0
"""`roundabout cassini`: what it shows, draws and refuses."""

import json
import shutil

import matplotlib.image
import numpy as np
import pytest

from roundabout.cli.main import main
from roundabout.spec import EXPERIMENTS

pytestmark = pytest.mark.unit

SNAPSHOT_2 = ["cassini", "vgg19-1400", "vgg16-1700", "resnet50-1600", "--capacity", "50"]


def test_scores_rotations_and_shifts_are_shown(capsys):
    assert main(SNAPSHOT_2) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert "Unified circle of 329.50 ms" in out
    assert ["vgg16-1700", "329.0", "1", "+0.15", "170.0", "155.6"] in [line.split() for line in out.splitlines()]
    assert "score 1.0000 at 50 Gbit/s, fully compatible; unrotated 0.8781" in out


def test_programs_get_json(capsys):
    assert main([*SNAPSHOT_2, "--precision", "5", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["score"], found["sectors"], found["is_best"]) == (found["score_bound"], 72, True)
    assert [job["job"] for job in found["jobs"]] == SNAPSHOT_2[1:4]
    assert [job["turns"] for job in found["jobs"]] == [1, 1, 2]
    assert all(0 <= job["shift_ms"] < job["quantised_ms"] for job in found["jobs"])


def test_shifts_of_ones_own_are_scored(capsys):
    """Table 4.3's, snapshot 2."""
    assert main([*SNAPSHOT_2, "--shifts", "0,158,46"]) == 0
    assert "shifted by 0, 158, 46 ms: score 1.0000" in capsys.readouterr().out
    assert main([*SNAPSHOT_2, "--shifts", "0,0,0", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["score_of_given_shifts"] == found["score_unrotated"] < 1


def test_strict_interleaving_is_an_option(capsys):
    assert main([*SNAPSHOT_2, "--strict"]) == 0
    assert "with one job at a time; unrotated" in capsys.readouterr().out


def test_a_profile_may_come_twice_and_from_a_file(tmp_path, capsys):
    file = shutil.copy(EXPERIMENTS / "profiles/hotnets22/vgg16-fig3.yaml", tmp_path / "mine.yaml")
    assert main(["cassini", str(file), "vgg16-fig3", "--capacity", "30"]) == 0
    out = capsys.readouterr().out
    assert "vgg16-fig3 #1" in out and "vgg16-fig3 #2" in out
    assert "vgg16-fig3 #1 requires 38.8 Gbit/s, more than the link has" in " ".join(out.split())


def test_the_circles_are_drawn(tmp_path):
    for name in ("circles.png", "circles.svg"):
        assert main([*SNAPSHOT_2, "--picture", str(tmp_path / name)]) == 0
    image = matplotlib.image.imread(tmp_path / "circles.png")
    circles = image[: len(image) * 4 // 5]  # above the key
    exceeds = (circles[..., 0] > 0.6) & (circles[..., 1] < 0.25)
    before, after = np.array_split(exceeds, 2, axis=1)
    assert before.sum() > 1000 and after.sum() == 0
    text = (tmp_path / "circles.svg").read_text()
    assert text.startswith("<?xml") and "<dc:date>" not in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("cassini vgg16-fig3 --capacity 0", "--capacity: found 0 Gbit/s, expected more than 0"),
        ("cassini vgg16-fig3 --capacity 50 --precision 0", "found a precision of 0 degrees"),
        ("cassini vgg16-fig3 --capacity 50 --picture a.pdf", "--picture: found 'a.pdf', expected a name that ends in"),
        ("cassini vgg16-fig3 --capacity 50 --picture none/a.png", "--picture: found no folder 'none'"),
        ("cassini vgg16-fig3 --capacity 50 --period-error -1", "--period-error: found -1 %"),
        (
            "cassini bert-8 dlrm-2000 --capacity 50 --turns 3",
            "no common multiple of the iteration times (bert-8 157 ms,",
        ),
        ("cassini vgg16-fig3 --capacity 50 --shifts 1,2", "--shifts: found '1,2', expected 1 numbers"),
        ("cassini vgg16-fig3 --capacity 50 --shifts nan", "--shifts: found 'nan'"),
        ("cassini vgg --capacity 50", "no vgg.yaml"),
        ("cassini ./none.yaml --capacity 50", "none.yaml"),
    ],
)
def test_bad_usage_of_cassini_is_refused_without_a_traceback(words, said, capsys):
    assert main(words.split()) != 0
    shown = capsys.readouterr().err
    assert said in shown and "Traceback" not in shown
