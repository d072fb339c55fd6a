# SPDX-License-Identifier: Apache-2.0
"""`roundabout profile --from FILE...`: what it shows, stores and refuses."""

import json
from pathlib import Path

import pytest

from analysis.statistics import phases
from roundabout.cli import profile as command
from roundabout.cli.main import main
from roundabout.spec import load_profile

HERE = Path(__file__).parent
TRACES = [str(HERE / "ddp-lab" / f"rank{rank}.json.gz") for rank in (0, 1)]
FABRIC = str(HERE / "examples" / "nccl-tests" / "version-3.json")


@pytest.fixture(autouse=True)
def few_resamplings(monkeypatch):
    monkeypatch.setattr(phases, "RESAMPLINGS", 3)


def test_a_profile_of_records_is_shown_and_stored(tmp_path, monkeypatch, capsys):
    (tmp_path / "experiments" / "profiles").mkdir(parents=True)
    monkeypatch.setattr(command, "EXPERIMENTS", tmp_path / "experiments")
    assert main(["profile", "--from", *TRACES, "--save", "seen", "--json"]) == 0
    captured = capsys.readouterr()
    stored, told = load_profile("seen", tmp_path / "experiments"), json.loads(captured.out)
    assert max(map(len, captured.err.splitlines()[:-1])) <= 80
    assert "PyTorch Kineto's trace: 2 ranks" in captured.err
    assert "- Whether the job had the network to itself is not recorded" in captured.err
    assert stored.alone_ms == pytest.approx(told["found"]["period_ms"]["value"], rel=0.001)
    assert [each["rank"] for each in told["records"]] == [0, 1]
    assert told["run"] is None


def test_files_may_be_named_by_an_option_each(capsys):
    assert main(["profile", "--from", TRACES[0], "--from", TRACES[1]]) == 0
    assert "not stored, expected --save NAME" in capsys.readouterr().out


def test_what_a_fabric_gives_is_a_table(capsys):
    assert main(["profile", "--from", FABRIC, "--json"]) == 0
    captured = capsys.readouterr()
    assert "The best bus bandwidth is 104.86 Gbit/s; 90 % of it is reached from 26.214 MB on." in " ".join(
        captured.err.split()
    )
    assert json.loads(captured.out)[0]["near_best_bytes"] == 26214400


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([TRACES[0]], "found no record of rank 1, expected all 2"),
        ([TRACES[0], TRACES[0]], "found rank 0, which"),
        ([TRACES[0], FABRIC], "found the record of a job beside"),
        ([FABRIC, "--save", "seen"], "what a fabric gives, and no job's iterations"),
        ([TRACES[0], "nowhere.json"], "found no file nowhere.json"),
        ([TRACES[0], str(HERE / "examples" / "chakra" / "timed.0.et")], "one job is recorded in one way"),
    ],
)
def test_what_cannot_be_a_profile_is_named(words, said, capsys):
    assert main(["profile", "--from", *words]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_a_job_or_files_are_asked_for(capsys):
    assert main(["profile"]) == 2
    assert "expected JOB, JOB --from RUN, or --from FILE..." in " ".join(capsys.readouterr().err.split())
