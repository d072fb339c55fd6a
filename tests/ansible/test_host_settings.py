# SPDX-License-Identifier: Apache-2.0
"""The module host_settings starts settings.py as root: the caller's environment has no influence on it."""

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from roundabout.core.paths import ROOT
from tests.running import load_program

pytestmark = pytest.mark.unit

host_settings = load_program(ROOT / "ansible/library/host_settings.py")


def test_no_module_of_pythonpath_reaches_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "argparse.py").write_text("raise SystemExit('a module of the caller')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def run_command(words: list[str], data: str) -> tuple[int, str, str]:
        done = subprocess.run(words, input=data, capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    (tmp_path / "bin").symlink_to(ROOT / "roundabout/settings")
    params = {"prefix": str(tmp_path), "state_folder": str(tmp_path / "state"), "owner": "me", "root": "/"}
    params |= {"link_timeout_s": "15", "shared_nic": ""}
    module: Any = SimpleNamespace(params={**params, "document": None}, run_command=run_command)
    assert host_settings.call(module, "journal") == (0, {"outstanding": []}, "")
