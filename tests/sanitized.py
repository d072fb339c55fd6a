# SPDX-License-Identifier: Apache-2.0
"""Programs built by clang under its sanitizers, for proofs."""

import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]


@cache
def sanitized(kinds: str, *programs: str) -> Path:
    """The folder of programs under these sanitizers, once they are up to date; the first time takes some minutes."""
    folder = ROOT / "build" / kinds.replace(",", "-")
    how = ["-DCMAKE_C_COMPILER=clang", "-DCMAKE_CXX_COMPILER=clang++", f"-DROUNDABOUT_SANITIZE={kinds}"]
    for words in (["-S", ROOT, "-B", folder, "-G", "Ninja", *how], ["--build", folder, "--target", *programs]):
        done = subprocess.run(["cmake", *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder / "bin"
