# SPDX-License-Identifier: Apache-2.0
"""A kept answer is the one that would be computed, whatever lies in the cache folder; without the folder all works."""

import os
from pathlib import Path

import pytest

from roundabout.cli.experiments import list_
from roundabout.core import memo
from roundabout.core.memo import MAX_ANSWERS, cached_answer
from roundabout.spec import loader
from roundabout.spec.errors import SpecError
from roundabout.spec.loader import Summary, read_catalog

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    """Return a folder that answers depend on; program and cache folder are the test's own."""
    for name in ("files", "source", "cache"):
        (tmp_path / name).mkdir(mode=0o700)
    (tmp_path / "files/one.yaml").write_text("one")
    (tmp_path / "source/code.py").write_text("code")
    monkeypatch.setattr(memo, "SOURCE", (tmp_path / "source",))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("ROUNDABOUT_PATH", raising=False)
    return tmp_path / "files"


def kept(tmp_path):
    return sorted((tmp_path / "cache/roundabout").glob("*"))


def read(folder, lasts=True):
    """Return the answer, and whether it was computed."""
    reads = []

    def compute():
        reads.append(True)
        return {path.name: path.read_text() for path in sorted(folder.iterdir())}, lasts

    return cached_answer("test", [folder], compute), bool(reads)


def test_an_answer_is_computed_once(files):
    assert read(files) == ({"one.yaml": "one"}, True)
    assert read(files) == ({"one.yaml": "one"}, False)


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "files/one.yaml").write_text("eno"),
        lambda folder: (folder / "files/two.yaml").write_text(""),
        lambda folder: (folder / "files/one.yaml").rename(folder / "files/two.yaml"),
        lambda folder: (folder / "files/one.yaml").unlink(),
        lambda folder: (folder / "source/code.py").write_text("edoc"),
        lambda folder: (folder / "source/more.yaml").write_text(""),
    ],
    ids=["content", "new file", "name", "no file", "program", "new module"],
)
def test_a_change_makes_it_another_answer(change, files, tmp_path):
    read(files)
    changed = files / "one.yaml"
    times = changed.stat()
    change(tmp_path)
    if changed.exists():
        os.utime(changed, ns=(times.st_atime_ns, times.st_mtime_ns))  # archives and rsync set this time, too
    answer, was_computed = read(files)
    assert was_computed
    assert answer == {path.name: path.read_text() for path in files.iterdir()}


def test_a_new_package_invalidates_cached_answers(files, tmp_path, monkeypatch):
    packages = tmp_path / "site-packages"
    packages.mkdir()
    monkeypatch.setattr("sys.path", [str(packages)])
    read(files)
    (packages / "pydantic-3.0.dist-info").mkdir()
    assert read(files)[1]


def test_an_answer_whose_files_change_meanwhile_is_not_cached(files, tmp_path):
    def compute():
        content = (files / "one.yaml").read_text()
        (files / "one.yaml").write_text("changed")
        (files / "one.yaml").write_text(content)
        return content, True

    assert cached_answer("test", [files], compute) == "one"
    assert kept(tmp_path) == []


def test_an_answer_that_depends_on_something_else_is_not_kept(files, tmp_path, monkeypatch):
    assert read(files, lasts=False)[1]
    monkeypatch.setenv("ROUNDABOUT_PATH", str(tmp_path))
    assert read(files)[1]
    assert kept(tmp_path) == []


@pytest.mark.parametrize(
    "content", [b"", b"{", b"5", b"[]", b"[5]", b"{}", b"\xff", b"null", b"[" * 100_000, b"1" * 1_000_001]
)
def test_damaged_answers_are_computed(content, files, tmp_path):
    read(files)
    (file,) = kept(tmp_path)
    file.write_bytes(content)
    assert read(files) == ({"one.yaml": "one"}, True)
    assert read(files)[1] is False


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_only_regular_files_are_read(kind, files, tmp_path):
    read(files)
    (file,) = kept(tmp_path)
    file.unlink()
    if kind == "link":
        (tmp_path / "foreign").write_text('{"answer": {"one.yaml": "foreign"}}')
        file.symlink_to(tmp_path / "foreign")
    elif kind == "pipe":
        os.mkfifo(file)
    else:
        file.mkdir()
    assert read(files) == ({"one.yaml": "one"}, True)


def test_a_folder_that_others_may_write_is_not_used(files, tmp_path):
    read(files)
    (tmp_path / "cache/roundabout").chmod(0o777)
    assert read(files)[1]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a folder away")
def test_root_leaves_the_folders_of_others_alone(files, tmp_path):
    os.chown(tmp_path / "cache", 65534, 65534)
    assert read(files)[1]
    assert read(files)[1]
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.parametrize("base", ["file", "missing/deeper", "link"])
def test_the_cache_works_without_a_folder(base, files, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "link")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / base))
    assert read(files) == ({"one.yaml": "one"}, True)
    assert read(files) == ({"one.yaml": "one"}, True)


def test_a_folder_that_is_named_relative_to_the_working_folder_is_not_made(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path / "source")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert read(files)[1]
    assert not (tmp_path / "source/relative").exists()


def test_the_cache_works_without_a_home(files, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    assert read(files)[1]


def test_the_youngest_answers_of_a_name_stay(files, tmp_path):
    for number in range(MAX_ANSWERS + 3):
        (files / "one.yaml").write_text(str(number))
        read(files)
        for place, file in enumerate(sorted(kept(tmp_path), key=lambda each: each.stat().st_mtime_ns)):
            os.utime(file, ns=(place, place))
    assert len(kept(tmp_path)) == MAX_ANSWERS
    assert read(files)[1] is False


def test_a_catalogue_with_an_error_is_not_kept(monkeypatch):
    wrong = Summary("wrong", "", "", 0, SpecError("wrong.yaml", "this", "that"))
    right = Summary("right", "about", "source", 3, None)
    for summaries, lasts in (([right], True), ([right, wrong], False), ([right._replace(reads_elsewhere=True)], False)):
        monkeypatch.setattr(loader, "read_catalog", lambda found=summaries: found)
        assert list_.catalog_records()[1] is lasts


def test_an_experiment_that_reads_elsewhere_is_known(tmp_path):
    catalog = tmp_path / "experiments/catalog"
    catalog.mkdir(parents=True)
    experiment = """
name: {name}
about: One
topology: pair
jobs: {{j1: {{profile: halves, workers: [s0, s1]}}}}
transport: {{file: {file}}}
iterations: 5
"""
    shelves = {"topologies/small/pair.yaml", "profiles/lab/halves.yaml"}
    for each in shelves:
        (tmp_path / "experiments" / each).parent.mkdir(parents=True)
        (tmp_path / "experiments" / each).write_text((loader.EXPERIMENTS / each).read_text())
    for name, file in (("inside", "mine.bpf.c"), ("outside", "../../mine.bpf.c")):
        (catalog / f"{name}.yaml").write_text(experiment.format(name=name, file=file))
        (catalog / file).write_text("")
    found = {
        each.name: (each.error and each.error.message, each.reads_elsewhere)
        for each in read_catalog(tmp_path / "experiments")
    }
    assert found == {"inside": (None, False), "outside": (None, True)}
