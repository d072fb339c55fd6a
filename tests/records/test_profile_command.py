# SPDX-License-Identifier: Apache-2.0
"""`roundabout profile records FILE...`: what it shows, stores and refuses."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from roundabout.cli.main import main
from roundabout.spec import load_profile
from tests.records.record_writers import Inspector, et, groups_node, metadata, node
from tests.records.synthetic_records import Made, data_parallel

pytestmark = [pytest.mark.unit, pytest.mark.usefixtures("few_resamplings")]

HERE = Path(__file__).parent
TRACES = [str(HERE / "ddp-lab" / f"rank{rank}.json.gz") for rank in (0, 1)]
FABRIC = str(HERE / "examples" / "nccl-tests" / "version-3.json")


def test_a_profile_of_records_is_shown_and_stored(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["profile", "records", *TRACES, "--save", "seen", "--json"]) == 0
    captured = capsys.readouterr()
    stored, reported = load_profile("seen", tmp_path), json.loads(captured.out)
    assert max(map(len, captured.err.splitlines()[:-1])) <= 80
    assert "PyTorch Kineto's trace: 2 ranks" in captured.err
    assert "- Whether the job had the network to itself is not recorded" in captured.err
    assert stored.alone_ms == pytest.approx(reported["found"]["period_ms"]["value"], rel=0.001)
    assert [each["rank"] for each in reported["records"]] == [0, 1]
    assert reported["run"] is None


def test_a_profile_without_a_name_is_not_stored(capsys):
    assert main(["profile", "records", *TRACES]) == 0
    assert "not stored; --save NAME stores it as profiles/NAME.yaml" in capsys.readouterr().out


def test_an_empty_name_is_not_the_working_directory(monkeypatch, capsys):
    monkeypatch.chdir(HERE / "ddp-lab")
    assert main(["profile", "records", ""]) == 2
    assert "profile records: found an empty name, expected files of records" in capsys.readouterr().err


def test_nccl_tests_results_are_shown_as_a_table(capsys):
    assert main(["profile", "records", FABRIC, "--json"]) == 0
    captured = capsys.readouterr()
    assert "The best bus bandwidth is 104.86 Gbit/s; 90 % of it is reached from 26.214 MB on." in " ".join(
        captured.err.split()
    )
    assert json.loads(captured.out)[0]["near_best_bytes"] == 26214400


def inspected(folder: Path, rank: int) -> Path:
    path = folder / f"n{rank}-pid42.log"
    path.write_bytes(Inspector(host=f"n{rank}").log([replace(call, group="0x5a") for call in job().calls[rank]]))
    return path


def executed(folder: Path, rank: int) -> Path:
    path, members = folder / f"job.{rank}.et", {"0": (0, 1, 2)}
    calls = [replace(call, group="0", number=None) for call in job().calls[rank]]
    schema = metadata("1.1.1-chakra.0.0.4")
    path.write_bytes(et([schema, groups_node(members), *(node(call, members) for call in calls)]))
    return path


def job() -> Made:
    clocks = [10**18, 10**18 + 5 * 10**9, 10**18 - 7 * 10**9]
    return data_parallel(3, 60_000_000, made=Made(3, clocks))


@pytest.mark.parametrize(("write", "name"), [(inspected, "NCCL Inspector's log"), (executed, "Chakra's")])
def test_each_record_format_makes_a_profile(write, name, tmp_path, capsys):
    paths = [str(write(tmp_path, rank)) for rank in range(3)]
    assert main(["profile", "records", *paths, "--json"]) == 0
    reported = json.loads(capsys.readouterr().out)
    assert reported["format"].startswith(name)
    assert reported["found"]["period_ms"]["value"] == pytest.approx(100, rel=0.005)
    assert [phase.get("bytes", 0) for phase in reported["profile"]["phases"]] == [
        0,
        pytest.approx(80_000_000, rel=0.01),
    ]
    assert [each["ahead_ns"] for each in reported["records"]] == [0, 5 * 10**9, -7 * 10**9]


def test_a_folder_stands_for_its_files(tmp_path, capsys):
    (tmp_path / "logs" / "older").mkdir(parents=True)
    (tmp_path / "logs" / ".hidden").write_text("")
    for rank in range(3):
        inspected(tmp_path / "logs", rank)
    assert main(["profile", "records", str(tmp_path / "logs"), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["records"]) == 3
    (tmp_path / "logs" / "README").write_text("Dear diary")
    (tmp_path / "logs" / "rank0_et.json").write_text('{"schema": "1.1.0-chakra.0.0.4", "nodes": []}')
    assert main(["profile", "records", str(tmp_path / "logs")]) == 0
    assert "left out, as they are no records: README, rank0_et.json" in " ".join(capsys.readouterr().out.split())


def test_a_folder_without_records_is_refused(tmp_path, capsys):
    assert main(["profile", "records", str(tmp_path)]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "profile records: folder " in said and "has no records: found no files" in said
    (tmp_path / "README").write_text("Dear diary")
    assert main(["profile", "records", str(tmp_path)]) == 2
    assert "has no records: found none in README" in " ".join(capsys.readouterr().err.split())
    assert main(["profile", "records", str(tmp_path / "README")]) == 2
    assert "README: found a file that begins with 'Dear diary'" in " ".join(capsys.readouterr().err.split())


def test_the_sample_is_a_folder_of_records_and_other_files(capsys):
    assert main(["profile", "records", "--sample", "--json"]) == 0
    captured = capsys.readouterr()
    assert "left out, as they are no records: README.md, nccl.log, timed.json" in " ".join(captured.err.split())
    assert [each["rank"] for each in json.loads(captured.out)["records"]] == [0, 1]
    assert main(["profile", "records", "--sample", "vgg19-fig1"]) == 2
    assert "found --sample beside files" in capsys.readouterr().err


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
def test_records_that_give_no_profile_are_refused(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["profile", "records", *words]) == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert not list(tmp_path.iterdir())


def test_records_need_files(capsys):
    assert main(["profile", "records"]) == 2
    assert "found no files, expected FILE..., or --sample" in " ".join(capsys.readouterr().err.split())
