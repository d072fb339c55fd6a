# SPDX-License-Identifier: Apache-2.0
"""Limits of an acceptance test: the project's file, and a user's file that overrides it."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from roundabout.spec.assembly.validation_errors import parse_as
from roundabout.spec.base import NotNegative, Strict
from roundabout.spec.reader.yaml_source import Block, Document, read_document, shown_path

DEFAULT_LIMITS = Path(__file__).with_name("limits.yaml")


class Limits(Strict):
    """Limits of figures (see limits.yaml). The figure's name follows `least_` or `most_`. None means not judged."""

    schema_version: Literal[1] = Field(alias="schema")
    most_lost: NotNegative | None
    most_lost_whole: NotNegative | None
    most_rtt_ms: NotNegative | None
    least_bandwidth: NotNegative | None
    most_write_latency_us: NotNegative | None
    most_risen: NotNegative | None
    least_bus_bandwidth: NotNegative | None
    least_use_two: NotNegative | None
    least_use_many: NotNegative | None
    least_jain_two: NotNegative | None
    least_jain_many: NotNegative | None
    least_marked_two: NotNegative | None
    least_marked_many: NotNegative | None
    most_marked_many: NotNegative | None
    most_resent: NotNegative | None
    most_drops: NotNegative | None
    most_pauses: NotNegative | None
    most_wrong_class: NotNegative | None
    most_other_priorities: NotNegative | None
    most_slowdown_idle: NotNegative | None
    most_slowdown_iperf: NotNegative | None
    most_slowdown_consistent: NotNegative | None
    most_slowdown_burst: NotNegative | None
    most_slowdown_job: NotNegative | None


def read_limits(path: Path | None) -> Limits:
    """Read the default limits, with overrides from the file `path` if given. Raises SpecError if it is invalid."""
    ours = read_document(DEFAULT_LIMITS, shown_path(DEFAULT_LIMITS))
    if path is None:
        return parse_as(Limits, ours)
    document = read_document(path, shown_path(path))
    merged = Block(document.root)
    for name, value in ours.root.items():
        merged.setdefault(name, value)
    return parse_as(Limits, Document(document.file, merged))
