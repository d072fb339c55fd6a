# SPDX-License-Identifier: Apache-2.0
"""A profile of any model: it computes, then sends."""

from typing import Any


def two_phases(compute_ms: float, size: int, alone_ms: float, **send: Any) -> dict[str, Any]:
    """The profile of a job that computes, then sends `size` bytes in `alone_ms`; `send` has further fields of that."""
    return {
        "model": "any",
        "phases": [
            {"name": "compute", "compute_ms": compute_ms, "guess": "any"},
            {"name": "send", "bytes": size, "alone_ms": alone_ms, "guess": "any", **send},
        ],
    }
