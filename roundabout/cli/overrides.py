# SPDX-License-Identifier: Apache-2.0
"""Overrides of an experiment's fields by the options --set, --only and --repetitions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from roundabout.core.errors import UsageError

if TYPE_CHECKING:
    from roundabout.spec.reader.yaml_source import Block


def parse_overrides(fields: Sequence[str] | None, only: Sequence[str] | None, repetitions: int | None) -> "Block":
    """Return the overrides of --set, --only and --repetitions.

    Raises UsageError for a malformed --set, and SpecError for a value that is not valid YAML.
    """
    from roundabout.spec.assembly.overrides import overrides_from_texts  # noqa: PLC0415
    from roundabout.spec.reader.yaml_source import Items, Mark  # noqa: PLC0415

    parts = [field.partition("=") for field in fields or ()]
    for path, equals, _ in parts:
        if not equals:
            raise UsageError(f"--set: found '{path}', expected PATH=VALUE, like jobs.j1.transport.T_us=90")
    block = overrides_from_texts({path: text for path, _, text in parts}, "--set")
    if only:
        block.put("only", Items(only, [Mark(None, "--only")] * len(only)), Mark(None, "--only"))
    if repetitions is not None:
        block.put("repetitions", repetitions, Mark(None, "--repetitions"))
    return block
