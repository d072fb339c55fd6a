# SPDX-License-Identifier: Apache-2.0
"""Former names of an experiment's fields and values: `needs`, `takes`, and `queue: meant`.

Former names are accepted until version 0.3, each with a FutureWarning.
"""

import re
import warnings
from typing import Any

from roundabout.spec.reader.yaml_source import Block, Document, Items

# Dotted locations of overlays: the file itself, a length, a level, and the overrides below `set`.
_OVERLAY = r"(set\.)?(lengths\.[^.]+\.)?(factors\.[^.]+\.[^.]+\.)?"
# The location of a factor over one field, whose name is the field's path.
_FACTOR = r"(set\.)?(lengths\.[^.]+\.)?factors\."
_FIELDS = {
    re.compile(rf"{_OVERLAY}needs"): "depends_on",
    re.compile(rf"({_OVERLAY}|{_FACTOR})jobs\.[^.]+\.takes"): "inputs",
}
_QUEUE = re.compile(rf"({_OVERLAY}|{_FACTOR})queue")

Location = tuple[str, ...]


def with_current_names(document: Document) -> Document:
    """Return an experiment's document with former names replaced by current names.

    Raises SpecError if a document uses both names of a field.
    """
    return Document(document.file, _rename(document, (), document.root), document.folder)


def _rename(document: Document, here: Location, value: Any) -> Any:
    if isinstance(value, Items):
        return Items([_rename(document, here, each) for each in value], value.marks)
    if not isinstance(value, Block):
        return _rename_value(here, value)
    renamed = Block()
    renamed.mark = value.mark
    for key, item in value.items():
        below = (*here, *(key.split(".") if here[-1:] in (("set",), ("factors",)) else (key,)))
        name = ".".join(_rename_field(below[:depth]) for depth in range(len(here) + 1, len(below) + 1))
        if name != key and name in value:
            raise document.error((*here, key), f"{key} beside {name}, its current name", f"{name} alone")
        renamed.put(name, _rename(document, below, item), value.marks.get(key))
    return renamed


def _rename_field(location: Location) -> str:
    field, dotted = location[-1], ".".join(location)
    current = next((name for former, name in _FIELDS.items() if former.fullmatch(dotted)), field)
    return field if current == field else _warn(field, current)


def _rename_value(location: Location, value: Any) -> Any:
    is_former = value == "meant" and _QUEUE.fullmatch(".".join(location))
    return _warn("queue: meant", "queue: auto").removeprefix("queue: ") if is_former else value


def _warn(former: str, current: str) -> str:
    warnings.warn(f"`{former}` is now `{current}`; version 0.3 will refuse `{former}`", FutureWarning, stacklevel=2)
    return current
