# SPDX-License-Identifier: Apache-2.0
"""What `make bare` shows and passes on; the rest is `make bare` itself."""

from pathlib import Path

import pytest

from tests.bare import __main__ as bare


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
        ("============ test session starts ==============\n", "test session"),
        ("ok: [localhost]\n", None),
    ],
)
def test_what_begins_a_part(line: str, part: str | None) -> None:
    mark = bare.MARKS.fullmatch(line)
    assert (mark and next(group for group in mark.groups() if group)) == part


def test_a_strangers_environment_knows_the_way_to_packages_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"https_proxy": "there:3128", "PIP_FIND_LINKS": "/wheels", "LAB_SECRET": "x"}.items():
        monkeypatch.setenv(name, value)
    found = bare.environment(tmp_path)
    assert found["https_proxy"] == "there:3128"
    assert found.keys().isdisjoint({"PIP_FIND_LINKS", "LAB_SECRET", "PIP_CERT"})
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/machine.crt").touch()
    assert bare.environment(tmp_path)["PIP_CERT"] == "/etc/machine.crt"
