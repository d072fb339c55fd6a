# SPDX-License-Identifier: Apache-2.0
"""Loader of the engines that are written in C++ and built as shared libraries.

An engine's C API is declared once, in native/c_api.h: its C++ includes that header, and Python reads it. Names of
functions begin with the engine's: fluid_run, for example.
"""

import re
from pathlib import Path
from typing import Any

import numpy as np
from cffi import FFI

from roundabout.core import paths
from roundabout.core.errors import RoundaboutError

PREPROCESSOR = re.compile(r"^#ifdef __cplusplus$.*?^#endif$|^#.*?$", re.DOTALL | re.MULTILINE)
"""The lines of a header that the parser of cffi does not read, with those for C++ alone."""


class EngineError(RoundaboutError):
    """An error for an engine that is not built, was stopped, has a defect, or was given what it cannot play."""


def read_header(engine: str) -> FFI:
    """Return the declarations of an engine's C API."""
    header = paths.ROOT / "roundabout/models" / engine / "native/c_api.h"
    declarations = FFI()
    declarations.cdef(PREPROCESSOR.sub("", header.read_text()))
    return declarations


def record_type(declarations: FFI, structure: str) -> np.dtype[np.void]:
    """Return the NumPy type of arrays of a C structure."""
    fields = declarations.typeof(f"struct {structure}").fields
    return np.dtype([(name, each.type.cname.removesuffix("_t")) for name, each in fields])


def open_library(engine: str, library: str, declarations: FFI) -> Any:
    """Return an engine's library, a path below `paths.ROOT`, with the functions that its header declares.

    Raises EngineError if it is not built, or not since a source of the engine changed.
    """
    return declarations.dlopen(str(_current_path(engine, library)))


def _current_path(engine: str, library: str) -> Path:
    path = paths.ROOT / library
    if not path.is_file():
        raise EngineError(f"not built: {library}", f"build it: {paths.BUILD}")
    sources = (paths.ROOT / "roundabout/models" / engine / "native").rglob("*.*") if paths.IS_CHECKOUT else ()
    if any(each.stat().st_mtime > path.stat().st_mtime for each in sources):
        raise EngineError(f"older than its sources: {library}", f"build it again: {paths.BUILD}")
    return path
