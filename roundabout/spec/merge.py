# SPDX-License-Identifier: Apache-2.0
"""The one rule by which an overlay changes what lies under it."""

from collections.abc import Mapping
from typing import Any

from roundabout.spec.source import Block


def merge(base: Mapping[str, Any], overlay: Mapping[str, Any]) -> Block:
    """`base` changed by `overlay`: mappings merge, lists and single values replace, null removes.

    A block whose `name` changes is replaced whole. Neither argument is changed; values keep the places where they stood.
    """
    renamed = "name" in base and overlay.get("name") is not None and overlay["name"] != base["name"]
    result = Block() if renamed else Block(base)
    marks = getattr(overlay, "marks", {})
    result.mark = getattr(overlay, "mark", None) if renamed else result.mark or getattr(overlay, "mark", None)
    for key, value in overlay.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping):
            under = result.get(key)
            if isinstance(under, Mapping):
                result.put(key, merge(under, value), None)
            else:
                result.put(key, merge({}, value), marks.get(key))
        else:
            result.put(key, value, marks.get(key))
    return result
