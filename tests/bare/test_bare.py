# SPDX-License-Identifier: Apache-2.0
"""What `make bare` shows and passes on; the rest is `make bare` itself."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.bare import __main__ as bare

pytestmark = pytest.mark.unit


def test_parts_and_their_parts_are_timed_and_short_ones_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    at = iter([0.0, 20.0, 80.0, 80.4, 100.0])
    monkeypatch.setattr(bare.time, "monotonic", lambda: next(at))
    parts = bare.Parts()
    with parts.part("make test") as begin:
        for inner in ("python", "nothing", "build"):
            begin(inner)
    assert str(parts) == "   100 s  make test\n      60 s  python\n      20 s  build"


def test_a_part_that_is_interrupted_is_timed_too() -> None:
    parts = bare.Parts()
    with pytest.raises(KeyboardInterrupt), parts.part("make test"):
        raise KeyboardInterrupt
    assert [name for _, name, _ in parts.taken] == ["make test"]


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("Setting up: apt will install python3\n", "apt will install python3"),
        ("TASK [native : Build the native programs] ****\n", "native : Build the native programs"),
        ("PLAY RECAP ****\n", "PLAY RECAP"),
        ("1 of 2: packets\n", "packets"),
        ("============ test session starts ==============\n", "test session"),
        ("ok: [localhost]\n", None),
    ],
)
def test_output_marks_of_parts_are_recognized(line: str, part: str | None) -> None:
    mark = bare.MARKS.fullmatch(line)
    assert (mark and next(group for group in mark.groups() if group)) == part


ROOT = bare.Stay("debian12", "root", ())
STRANGER = bare.Stay("ubuntu24.04", bare.STRANGER, ())


def test_a_strangers_environment_has_the_way_to_packages_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"https_proxy": "there:3128", "PIP_FIND_LINKS": "/wheels", "LAB_SECRET": "x"}.items():
        monkeypatch.setenv(name, value)
    found = bare.environment(tmp_path, ROOT)
    assert found["https_proxy"] == "there:3128"
    assert found.keys().isdisjoint({"PIP_FIND_LINKS", "LAB_SECRET", "PIP_CERT"})
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/machine.crt").touch()
    assert bare.environment(tmp_path, ROOT)["PIP_CERT"] == "/etc/machine.crt"


def test_users_other_than_root_get_a_home_of_their_own(tmp_path: Path) -> None:
    assert [bare.environment(tmp_path, stay)["HOME"] for stay in (ROOT, STRANGER)] == ["/root", "/home/stranger"]
    assert [str(stay) for stay in (ROOT, STRANGER)] == ["Debian 12, as root", "Ubuntu 24.04, as a user with sudo"]


@pytest.mark.parametrize("name", bare.SYSTEMS)
def test_a_system_comes_from_its_own_archive_unless_a_mirror_is_known(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def indextargets(words: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        known = "deb http://mirror/debian trixie main\n" if "Origin: Debian" in words else ""
        return subprocess.CompletedProcess(words, 0, known)

    system = bare.SYSTEMS[name]
    monkeypatch.setattr(bare.subprocess, "run", indextargets)
    assert bare.apt_sources(system) == system.sources
    assert next(line.split()[2] for line in system.sources) == system.release


def test_this_machines_way_to_a_system_is_the_first_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = "deb http://mirror/security bookworm-security main\ndeb http://mirror/debian bookworm main\n"
    done = subprocess.CompletedProcess([], 0, sources)
    monkeypatch.setattr(bare.subprocess, "run", lambda *_, **__: done)
    assert bare.apt_sources(bare.SYSTEMS["debian12"]) == sorted(sources.splitlines())


@pytest.mark.parametrize(
    ("words", "stays"),
    [
        ([], bare.STAYS),
        (["make doctor"], [bare.Stay("debian12", "root", ["make doctor"])]),
        (["--system", "ubuntu24.04"], [bare.Stay("ubuntu24.04", "root", bare.README)]),
        (["--user", "stranger", "true"], [bare.Stay("debian12", "stranger", ["true"])]),
    ],
)
def test_command_line_words_select_systems_and_users(words: list[str], stays: Sequence[bare.Stay]) -> None:
    assert bare.parse_stays(words) == stays


def test_both_systems_are_tested_and_one_without_root() -> None:
    assert {stay.system for stay in bare.STAYS} == bare.SYSTEMS.keys()
    assert {stay.user for stay in bare.STAYS} == {"root", bare.STRANGER}
