# SPDX-License-Identifier: Apache-2.0
"""`make` and the set-up that it calls first, on a machine that is set up."""

import subprocess
import time
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]


def make(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["make", "--silent", *words], cwd=REPOSITORY, capture_output=True, text=True)


def test_set_up_again_is_silent_and_quick() -> None:
    make("setup")  # whatever was edited since the last build
    begin = time.monotonic()
    done = make("setup")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert time.monotonic() - begin < 2


def test_help_names_every_target() -> None:
    listed = {line.split()[1] for line in make().stdout.splitlines()}
    assert listed == {"help", "experiment", "sweep", "report", "doctor", "provision", "verify", "rollback"} | {
        "lint",
        "test",
        "bench",
        "clean",
    }


@pytest.mark.parametrize(
    ("target", "example"),
    [
        ("experiment", "make experiment NAME=unfair-vgg19"),
        ("sweep", "make sweep NAME=unfair-vgg19"),
        ("provision", "make provision INVENTORY=inventory"),
        ("verify", "make verify INVENTORY=inventory"),
        ("rollback", "make rollback INVENTORY=inventory"),
    ],
)
def test_a_missing_word_is_named_before_anything_is_done(target: str, example: str) -> None:
    done = make(target)
    assert done.returncode == 2
    assert done.stdout == ""
    assert f"say which: {example}" in done.stderr


def test_every_package_is_pinned_with_hashes_and_no_host() -> None:
    lines = (REPOSITORY / "requirements.txt").read_text().splitlines()
    text = [line for line in lines if line and not line.startswith("#")]
    assert all(line.startswith("    --hash=sha256:") or "==" in line for line in text)
    assert not any("://" in line for line in lines)
