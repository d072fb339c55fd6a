# SPDX-License-Identifier: Apache-2.0
"""The structures that the packet-level engine takes and gives, as native/c_api.h declares them."""

from typing import Any

from roundabout.models.native_engine import read_header, record_type

PS_PER_MS = 1_000_000_000
PS_PER_US = 1_000_000
NS_PER_US = 1_000
NEVER = 2**63 - 1

DECLARATIONS = read_header("packets")

Structure = Any
"""A structure of the header. Its fields are attributes."""


def make_structure(name: str, **fields: Any) -> Structure:
    """Return a structure of the header. Fields that are not given are 0, and a field can be a mapping of its own.

    Raises:
        KeyError: the structure has no such field.
        TypeError: a value is of another type than its field.
        OverflowError: a value is out of its field's range.
    """
    return DECLARATIONS.new(f"struct {name} *", fields)


FLOW, FLOW_RECORD, RECORD = (
    record_type(DECLARATIONS, name) for name in ("flow_plan", "flow_record", "iteration_record")
)
"""NumPy's types of planned flows of cross traffic, of their outcomes, and of one worker's iterations."""
