# SPDX-License-Identifier: Apache-2.0
"""The fluid engine as WebAssembly: the sources of roundabout/models/fluid/native, and two_jobs.cpp, in one script.

The script holds the compiled engine as base64, because a page that is opened as a file may not load other data.
"""

import base64
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from roundabout.core.errors import RoundaboutError
from roundabout.core.paths import ROOT

FOLDER = Path(__file__).parent
NATIVE = ROOT / "roundabout/models/fluid/native"
COMPILER = "clang++-16"
"""The oldest compiler whose C++ library has the engine's algorithms. Debian 12 and Ubuntu 24.04 have it."""
OPTIONS = (
    *("--target=wasm32-wasi", "-mexec-model=reactor", "-std=c++20", "-O2", "-fno-exceptions", f"-I{ROOT}"),
    # The compiler finds this folder by itself only where a native libc++ is installed, too.
    *("-nostdinc++", "-isystem/usr/include/wasm32-wasi/c++/v1"),
    "-Wl,--strip-all",
)


class CompileError(RoundaboutError):
    """The engine cannot be compiled to WebAssembly."""


def compile_engine() -> bytes:
    """Return the WebAssembly module of the engine. Raises CompileError."""
    sources = [FOLDER / "two_jobs.cpp", *sorted(NATIVE.glob("*.cpp"))]
    with TemporaryDirectory() as folder:
        module = Path(folder) / "engine.wasm"
        words = [COMPILER, *OPTIONS, *map(str, sources), "-o", str(module)]
        try:
            done = subprocess.run(words, capture_output=True, text=True)
        except FileNotFoundError:
            raise CompileError(f"found no {COMPILER}, which the playground needs", "run ./bootstrap docs") from None
        if done.returncode:
            raise CompileError(f"the playground's engine: {COMPILER} failed: {done.stderr[-2000:]}")
        return module.read_bytes()


def write_playground(folder: Path) -> None:
    """Make `folder` with all that the playground's page loads: scripts, style and engine. Raises CompileError."""
    folder.mkdir()
    for pattern in ("*.js", "*.css"):
        for file in FOLDER.glob(pattern):
            shutil.copyfile(file, folder / file.name)
    (folder / "engine.js").write_text(f'const ENGINE = "{base64.b64encode(compile_engine()).decode()}";\n')
