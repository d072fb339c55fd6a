# SPDX-License-Identifier: Apache-2.0
"""`roundabout affinity`: one time-shift a job over an experiment's links, what it draws and refuses."""

import hashlib
import json

import pytest

from analysis.reports import affinity
from roundabout.cli.main import main
from roundabout.models.cassini import Arc, Candidate, Circle, rank_placements

pytestmark = pytest.mark.unit

LOOPED = """
name: looped
about: Three jobs, of which each pair shares a link
topology: cluster-24-1cable
jobs:
  j1: {profile: vgg19-fig1, workers: [s0, s3]}
  j2: {profile: vgg19-fig1, workers: [s1, s6]}
  j3: {profile: vgg19-fig1, workers: [s4, s7]}
iterations: 2
transport: {name: reno}
"""


def test_a_job_on_two_links_gets_one_time_shift(capsys):
    """Figure 4.7: on the second link it stays, and the third job moves by as much."""
    assert main(["affinity", "cassini-two-links", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert [link["link"] for link in found["links"]] == ["L1", "L2"]
    one, other = (link["shifts_ms"] for link in found["links"])
    assert (one["j1"], other["j2"]) == (0, 0)
    assert found["shifts_ms"] == {"j1": 0, "j2": one["j2"], "j3": pytest.approx((one["j2"] + other["j3"]) % 293)}
    assert main(["affinity", "cassini-two-links"]) == 0
    assert "for all links, ms" in capsys.readouterr().out


def test_each_group_of_jobs_is_by_itself(capsys):
    assert main(["affinity", "cassini-snapshots", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["placement"] for each in found] == [f"snapshot {number}" for number in range(1, 6)]
    assert main(["affinity", "websearch-bert"]) == 0
    assert "No jobs share a link." in capsys.readouterr().out


def test_the_graph_has_a_line_a_job_and_link():
    circles = {name: Circle(name, 100, (Arc(0, 50, 50),)) for name in ("a", "b", "c")}
    chain = Candidate("chain", {"L1": ("a", "b"), "L2": ("b", "c")})
    drawn = affinity.figure([rank_placements([chain], circles, {"L1": 50.0, "L2": 50.0}).ranked[0]])
    (panel,) = drawn.axes
    ends = {(line.get_ydata()[0], line.get_ydata()[1]) for line in panel.lines}
    assert len(panel.lines) == len(ends) == 4
    said = [text.get_text() for text in panel.texts]
    assert said == ["0 ms", "50 ms", "0 ms", "50 ms", "a\nshift 0 ms", "b\nshift 50 ms", "c\nshift 0 ms",
                    "L1\nscore 1.00", "L2\nscore 1.00"]  # fmt: skip


def test_a_picture_comes_out_the_same_again(tmp_path):
    hashes = set()
    for name in ("one.svg", "other.svg"):
        assert main(["affinity", "cassini-two-links", "--picture", str(tmp_path / name)]) == 0
        hashes.add(hashlib.sha256((tmp_path / name).read_bytes()).hexdigest())
    assert len(hashes) == 1
    assert main(["affinity", "cassini-two-links", "--picture", str(tmp_path / "one.pdf")]) != 0


def test_a_loop_of_three_jobs_is_refused_by_name(tmp_path, capsys):
    path = tmp_path / "looped.yaml"
    path.write_text(LOOPED)
    assert main(["affinity", str(path)]) == 1
    assert "found a loop in the affinity graph: j3 - tor1 - j1 - tor0 - j2 - tor2 - j3" in capsys.readouterr().err
