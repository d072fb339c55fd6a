# SPDX-License-Identifier: Apache-2.0
"""Experiments, profiles and topologies of one's own, outside the checkout."""

from pathlib import Path

import pytest
import yaml

from roundabout.cli.main import main
from roundabout.spec import EXPERIMENTS, SpecError, load_experiment, load_profile, load_topology
from roundabout.spec.assembly.library import CATALOG, PROFILES, TOPOLOGIES, guess_kind
from roundabout.spec.reader.yaml_source import read_document

pytestmark = pytest.mark.unit

MINE = """\
name: mine
about: three jobs on links of their own
topology: trio
profile: quick
jobs:
  j1: {workers: [s0, s3]}
  j2: {workers: [s1, s4]}
  j3: {workers: [s2, s5]}
iterations: 3
transport: {name: cubic}
"""
QUICK = """\
name: quick
model: none
phases: [{name: send, bytes: 1_000_000, alone_ms: 1, guess: none}]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which commands are given."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def trio() -> str:
    return (EXPERIMENTS / "topologies/small/dumbbell-3x3.yaml").read_text().replace("name: dumbbell-3x3", "name: trio")


@pytest.mark.parametrize("shelved", [True, False])
def test_profiles_and_topologies_beside_an_experiment_are_found(folder: Path, shelved: bool) -> None:
    for shelf, name, text in ((PROFILES, "quick", QUICK), (TOPOLOGIES, "trio", trio())):
        place = folder / shelf if shelved else folder
        place.mkdir(exist_ok=True)
        (place / f"{name}.yaml").write_text(text)
    (folder / "mine.yaml").write_text(MINE)
    experiment = load_experiment("mine.yaml")
    assert len(experiment.cells[0].spec.topology.hosts) == 6
    alone = folder / "alone" / "again.yaml"  # what ran can be read where nothing lies beside it
    alone.parent.mkdir()
    alone.write_text(yaml.safe_dump(experiment.document))
    assert load_experiment(alone).cells == experiment.cells


def test_profiles_and_topologies_inside_an_experiment_come_first(folder: Path) -> None:
    (folder / "trio.yaml").write_text("never read")
    parts = {PROFILES: {"quick": yaml.safe_load(QUICK)}, TOPOLOGIES: {"trio": yaml.safe_load(trio())}}
    (folder / "mine.yaml").write_text(MINE + yaml.safe_dump(parts))
    assert load_experiment("mine.yaml").cells[0].spec.topology.name == "trio"


def test_a_name_that_is_nowhere_is_said(folder: Path) -> None:
    (folder / "mine.yaml").write_text(MINE)
    (folder / "trio.yaml").write_text(QUICK)  # of that name, but no topology
    with pytest.raises(SpecError, match=r"mine.yaml:3: topology: found 'trio', .*or trio.yaml beside the experiment"):
        load_experiment("mine.yaml")


SHELVES = (CATALOG, PROFILES, TOPOLOGIES)
IN_LIBRARY = [path for shelf in SHELVES for path in sorted(EXPERIMENTS.glob(f"{shelf}/*/*.yaml"))]


@pytest.mark.parametrize("path", IN_LIBRARY, ids=lambda path: path.stem)
def test_kinds_are_recognized_by_their_fields(path: Path) -> None:
    assert guess_kind(read_document(path).root) == path.parents[1].name


def test_validate_takes_all_three(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "mine.yaml").write_text(MINE)
    (folder / "trio.yaml").write_text(trio())
    (folder / "quick.yaml").write_text(QUICK)
    assert main(["validate", "mine.yaml", "trio.yaml", "quick.yaml", "dumbbell-2x2", "bert-8"]) == 0
    said, *delays = capsys.readouterr().out.splitlines()
    assert said == "5 files checked, nothing wrong"
    assert [line.partition(":")[0] for line in delays] == ["trio.yaml", "dumbbell-2x2"]
    assert delays[1].endswith("a mark cuts a rate after 8.6 to 10.6 us over an empty network, from s2 to s0")
    (folder / "trio.yaml").write_text(trio().replace("hosts:", "hostz:"))
    (folder / "quick.yaml").write_text(QUICK.replace("guess: none", "guess: none, alnoe: 1"))
    assert main(["validate", "trio.yaml", "quick.yaml"]) == 2
    said = capsys.readouterr().err
    assert "trio.yaml:9: hostz: found the unknown field 'hostz', expected one of schema, name" in said
    assert "did you mean hosts?\n  by its fields, the file is a topology" in said
    assert "by its fields, the file is a profile" in said


def test_a_topology_is_no_experiment(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "trio.yaml").write_text(trio())
    assert main(["plan", "trio.yaml"]) == 2
    assert "trio.yaml:2: found a topology, expected an experiment" in capsys.readouterr().err


def test_a_new_experiment_is_valid_as_it_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "my-first"]) == 0
    assert "run my-first.yaml --testbed fluid" in capsys.readouterr().out
    assert load_experiment("my-first.yaml").name == "my-first"
    assert "NAME" not in Path("my-first.yaml").read_text()
    assert main(["validate", "my-first.yaml"]) == 0
    assert load_experiment("my-first.yaml", length="quick").repetitions == 1
    assert main(["new", "my-first"]) == 2
    assert "found a file my-first.yaml, expected none of that name" in capsys.readouterr().err
    assert main(["new", "../x"]) == 2
    assert "found '../x', expected a name of at most 64 letters" in capsys.readouterr().err


def test_a_new_experiment_may_have_a_name_that_yaml_reads_as_another_value(folder: Path) -> None:
    assert main(["new", "null"]) == 0
    assert main(["new", "12", "--from", "leaf-spine"]) == 0
    assert load_experiment("null.yaml").name == "null"
    assert load_experiment("12.yaml").cells[0].spec.topology.name == "12"


def test_a_folder_is_no_file(folder: Path) -> None:
    for path in (".", "..", "./", str(folder)):
        with pytest.raises(SpecError, match="found a folder, expected a file that can be read"):
            load_experiment(path)


LOADERS = {"catalog": load_experiment, "topologies": load_topology, "profiles": load_profile}
SHIPPED = {"catalog": "unfair-vgg19", "topologies": "dumbbell-2x2", "profiles": "vgg19-fig1"}


@pytest.mark.parametrize("shelf", LOADERS)
@pytest.mark.parametrize("suffix", ["yaml", "yml", "YAML", "Yml"])
def test_a_file_in_the_working_folder_needs_no_path(
    shelf: str, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = SHIPPED[shelf]
    Path(f"own.{suffix}").write_bytes(next((EXPERIMENTS / shelf).rglob(f"{name}.yaml")).read_bytes())
    assert LOADERS[shelf](f"own.{suffix}") == LOADERS[shelf](name)


@pytest.mark.parametrize("shelf", LOADERS)
@pytest.mark.parametrize(
    ("made", "hint"),
    [
        ("own", "the file own is in this folder: call it ./own"),
        ("own.yaml", "the file own.yaml is in this folder: call it ./own.yaml"),
        ("own/a.yaml", "own is a folder here: name a file in it, as ./own/FILE.yaml"),
    ],
)
def test_a_name_that_is_a_file_in_the_working_folder_gets_a_hint(
    shelf: str, made: str, hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(made).parent.mkdir(exist_ok=True)
    Path(made).write_text("")
    with pytest.raises(SpecError, match=r"found no own\.yaml, expected one of ") as caught:
        LOADERS[shelf]("own")
    assert caught.value.hint == hint
