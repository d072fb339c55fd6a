# SPDX-License-Identifier: Apache-2.0
"""A trial of two hosts on a leaf-spine whose links have events."""

from typing import Any

from roundabout.spec import TrialSpec
from tests.trials import build_trial
from tests.two_phases import two_phases


def event_trial(*events: dict[str, Any], **fields: Any) -> TrialSpec:
    """Return the trial with these events and other fields of its experiment."""
    file: dict[str, Any] = {
        "topology": "leaf-spine-2x2",
        "profiles": {"p": two_phases(10, 1_000_000, 10)},
        "jobs": {"j": {"profile": "p", "workers": ["s0", "s2"]}},
        "transport": {"name": "dcqcn"},
        "iterations": 3,
        "events": list(events),
    }
    return build_trial(**file | fields)
