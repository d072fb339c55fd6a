# SPDX-License-Identifier: Apache-2.0
"""Feedback delays of trials, for people."""

from collections.abc import Iterable

from roundabout.spec import TrialSpec


def describe_feedback(specs: Iterable[TrialSpec]) -> list[str]:
    """Return a line for each delay of feedback in `specs`, and none if no job has RDMA."""
    found = dict.fromkeys(spec.feedback_delay for spec in specs)
    return [f"feedback: a mark cuts a rate after {delay} over an empty network" for delay in found if delay]
