# SPDX-License-Identifier: Apache-2.0
"""The structures that the packet-level engine takes and gives, as native/c_api.h declares them."""

from functools import cache
from typing import Any

import numpy as np
from cffi import FFI

from roundabout.models.native_engine import read_header, record_type

PS_PER_MS = 1_000_000_000
PS_PER_US = 1_000_000
NEVER = 2**63 - 1

Structure = Any
"""A structure of the header. Its fields are attributes."""


@cache
def declarations() -> FFI:
    """Return the declarations of the header. The first call parses it."""
    return read_header("packets")


def make_structure(name: str, **fields: Any) -> Structure:
    """Return a structure of the header. Fields that are not given are 0, and a field can be a mapping of its own.

    Raises:
        KeyError: the structure has no such field.
        TypeError: a value is of another type than its field.
        OverflowError: a value is out of its field's range.
    """
    return declarations().new(f"struct {name} *", fields)


@cache
def array_type(structure: str) -> np.dtype[np.void]:
    """Return the NumPy type of arrays of a structure of the header."""
    return record_type(declarations(), structure)
