# SPDX-License-Identifier: Apache-2.0
"""The rule for merging an overlay into a specification."""

from collections.abc import Mapping
from typing import Any

from roundabout.spec.reader.yaml_source import Block


def merge(base: Mapping[str, Any], overlay: Mapping[str, Any]) -> Block:
    """Return `base` changed by `overlay`: mappings merge, lists and single values replace, null removes.

    A block whose `name` or `file` changes is replaced as a whole. Neither argument is modified. Values keep the marks
    of their places in the files.
    """
    renamed = _renames(base, overlay)
    result = Block() if renamed else Block(base)
    marks = getattr(overlay, "marks", {})
    result.mark = getattr(overlay, "mark", None) if renamed else result.mark or getattr(overlay, "mark", None)
    for key, value in overlay.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping):
            under = result.get(key, {})
            changes = key in result and isinstance(under, Mapping) and not _renames(under, value)
            merged = merge(under if isinstance(under, Mapping) else {}, value)
            result.put(key, merged, None if changes else marks.get(key))
        else:
            result.put(key, value, marks.get(key))
    return result


def _renames(base: Mapping[str, Any], overlay: Mapping[str, Any]) -> bool:
    ours, theirs = (block.get("file", block.get("name")) for block in (base, overlay))
    return isinstance(ours, str) and isinstance(theirs, str) and ours != theirs
