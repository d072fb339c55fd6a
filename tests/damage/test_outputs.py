# SPDX-License-Identifier: Apache-2.0
"""Commands that write where they cannot: one clear error, and nothing that was there is changed."""

import os
import stat
from pathlib import Path

import pytest

from roundabout.cli.main import main
from roundabout.store import Run
from tests.analysis.computed_run import TINY, compute

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return compute(tmp_path_factory.mktemp("outputs"))


WRITERS = {
    "csv": ["export", "{run}", "--csv", "{out}"],
    "trace": ["export", "{run}", "--trace", "first", "--to", "{out}"],
    "junit": ["compare", "{run}", "{run}", "--fail-if", "mean > 5 %", "--junit", "{out}"],
    "picture": ["cassini", "vgg19-1400", "vgg16-1700", "--capacity", "50", "--picture", "{out}.svg"],
    "page": ["scoreboard", "--runs", "{run}", "--page", "{out}"],
    "explorer": ["explore", "{run}", "--page", "{out}"],
    "advice": ["advise", "{run}", "--page", "{out}"],
    "decode": ["decode", "{run}/manifest.json", "--output", "{out}"],
}
NEW = ("csv", "trace")
"""Writers that replace nothing: their outputs belong to one run, and say so nowhere."""


def fails(writer: str, run: Run, out: object, capsys: pytest.CaptureFixture[str]) -> str:
    assert main([word.format(run=run.path, out=out) for word in WRITERS[writer]]) in (1, 2)
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert said.count("error: ") == 1
    assert "unexpected" not in said
    return said


@pytest.mark.parametrize("writer", WRITERS)
def test_a_name_that_is_no_file_is_refused_and_stays(writer, run, tmp_path, capsys) -> None:
    suffix = ".svg" if writer == "picture" else ""
    for name, make in (("folder", lambda path: (path / "x").mkdir(parents=True)), ("pipe", os.mkfifo)):
        path = tmp_path / f"{name}{suffix}"
        make(path)
        before = path.lstat()
        fails(writer, run, tmp_path / name, capsys)
        assert stat.S_IFMT(path.lstat().st_mode) == stat.S_IFMT(before.st_mode)
        assert path.lstat().st_ino == before.st_ino


@pytest.mark.parametrize("writer", [name for name in WRITERS if name != "csv"])
def test_a_folder_that_is_missing_is_named(writer, run, tmp_path, capsys) -> None:
    assert f"found no folder '{tmp_path / 'none'}'" in fails(writer, run, tmp_path / "none" / "out", capsys)


@pytest.mark.parametrize("writer", WRITERS)
def test_a_name_that_is_too_long_is_refused(writer, run, tmp_path, capsys) -> None:
    assert "ile name too long" in fails(writer, run, tmp_path / ("x" * 300), capsys)


@pytest.mark.parametrize("writer", NEW)
def test_an_earlier_export_is_not_overwritten(writer, run, tmp_path, capsys) -> None:
    words = [word.format(run=run.path, out=tmp_path / "out") for word in WRITERS[writer]]
    assert main(words) == 0
    written = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert "exists" in fails(writer, run, tmp_path / "out", capsys)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == written


@pytest.mark.skipif(not os.path.exists("/dev/null"), reason="no devices here")
def test_a_device_is_never_replaced(run, capsys) -> None:
    before = Path("/dev/null").lstat()
    for writer in ("trace", "junit", "page", "decode"):
        assert "is a device" in fails(writer, run, "/dev/null", capsys)
    assert Path("/dev/null").lstat().st_ino == before.st_ino


def test_new_does_not_overwrite_an_experiment(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.yaml").write_text(TINY)
    assert main(["new", "tiny"]) == 2
    assert "found a file tiny.yaml, expected none of that name" in capsys.readouterr().err
    assert (tmp_path / "tiny.yaml").read_text() == TINY
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everywhere
    assert main(["new", "other"]) == 2
    assert "the folder '.' cannot be written to" in capsys.readouterr().err


def test_a_profile_is_saved_under_a_new_name_alone(run, capsys) -> None:
    assert main(["profile", "measure", "j1", "--from", str(run.path), "--save", "vgg19-fig1"]) == 2
    assert "vgg19-fig1.yaml exists, expected a new name after --save" in capsys.readouterr().err
