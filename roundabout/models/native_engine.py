# SPDX-License-Identifier: Apache-2.0
"""Loader of the engines that are written in C++ and built as shared libraries.

A library's functions have C's calling convention, and names that begin with the engine's: fluid_run, for example.
"""

import ctypes
from collections.abc import Mapping
from typing import Any

from roundabout.core import paths
from roundabout.core.errors import RoundaboutError

Functions = Mapping[str, tuple[Any, tuple[Any, ...]]]
"""Result type and argument types of each function, by its name without the engine's."""


class EngineError(RoundaboutError):
    """An error for an engine that is not built, was stopped, has a defect, or was given what it cannot play."""


def load_engine(engine: str, library: str, functions: Functions) -> ctypes.CDLL:
    """Return an engine's library, a path below `paths.ROOT`, with the types of its functions.

    Raises EngineError if it is not built, or not since a source of the engine changed.
    """
    path = paths.ROOT / library
    if not path.is_file():
        raise EngineError(f"not built: {library}", f"build it: {paths.BUILD}")
    sources = (paths.ROOT / "roundabout/models" / engine / "native").rglob("*.*")  # none in a wheel
    if any(each.stat().st_mtime > path.stat().st_mtime for each in sources):
        raise EngineError(f"older than its sources: {library}", f"build it again: {paths.BUILD}")
    loaded = ctypes.CDLL(str(path))
    for name, (returned, taken) in functions.items():
        function = getattr(loaded, f"{engine}_{name}")
        function.restype, function.argtypes = returned, taken
    return loaded
