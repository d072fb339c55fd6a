# SPDX-License-Identifier: Apache-2.0
"""Overrides of an experiment's fields by dotted paths: `--set jobs.j1.transport.T_us=90`, or `set` in the file.

An override of a field that overlays may set applies on top of every level. An override of any other field changes the
file's own value. The path of a factor that is a list sets the factor's levels.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from roundabout.spec.assembly.factors import nested_overlay
from roundabout.spec.assembly.library import HEADER, OVERLAYABLE
from roundabout.spec.assembly.merge import merge
from roundabout.spec.assembly.validation_errors import fields_at
from roundabout.spec.errors import SpecError, list_choices, quote_value, suggest
from roundabout.spec.reader.yaml_source import Block, Document, Items, Mark, as_yaml, parse_option
from roundabout.spec.transports.registry import find_declaration, transport_names
from roundabout.spec.treatment import Treatment

SET = "set"
ONCE = tuple(field for field in (*HEADER, "factors") if field != SET)
# Fields that map names to blocks. Overriding a field of a missing block would create an incomplete block.
NAMED = ("jobs", "cross_traffic")


class Override(NamedTuple):
    """An override: the path of a field, its value, and the place where the override was written."""

    path: tuple[str, ...]
    value: Any
    mark: Mark | None

    def applies_to(self, root: Block) -> bool:
        """Return False if the override changes a field of a job or of cross traffic that is missing in `root`."""
        adds = len(self.path) == 2 and self.value is not None
        if self.path[0] not in NAMED or len(self.path) < 2 or adds:
            return True
        named = root.get(self.path[0], {})
        return not isinstance(named, Mapping) or self.path[1] in named


def overrides_from_texts(texts: Mapping[str, str], option: str = "set") -> Block:
    """Parse overrides (path -> YAML text of the value) of the command-line option `option`.

    Error messages name the option and path as the place. Raises SpecError if a value is invalid YAML.
    """
    block = Block()
    for path, text in texts.items():
        block.put(path, *parse_option(f"{option} {path}", text))
    return block


def overrides_from_values(values: Mapping[str, Any]) -> Block:
    """Return overrides from parsed values (path -> value), as a run records them.

    Raises SpecError for a value that no file could hold.
    """
    return overrides_from_texts({path: as_yaml(value, path) for path, value in values.items()})


def with_overrides(document: Document, changes: Block) -> Document:
    """Return the document with `changes` merged into its field `set`. They replace the file's overrides of a path."""
    root, before = Block(document.root), document.root.get(SET)
    block = Block(before if isinstance(before, Block) else None)
    for path, value in changes.items():
        block.put(path, value, changes.marks.get(path))
    root.put(SET, block, None)
    return Document(document.file, root, document.folder)


def apply_file_overrides(document: Document) -> tuple[Document, tuple[Override, ...]]:
    """Apply the file's `set`: return the document with its header fields overridden, and the remaining overrides.

    The remaining overrides apply to every combination of levels. Raises SpecError if `set` is invalid.
    """
    written = document.root.get(SET)
    if written is None:
        return document, ()
    if not isinstance(written, Block):
        raise document.error((SET,), quote_value(written), "a mapping of dotted paths to values")
    root, over = Block(document.root), []
    for name, value in written.items():
        change = Override(tuple(name.split(".")), value, written.marks.get(name))
        _check(document, name)
        if name == "name":
            root.put(name, value, change.mark)  # merged, it would replace the file, as a transport's name does
        elif overlay := _file_overlay(root, name, change):
            root = merge(root, overlay)
        else:
            over.append(change)
    return Document(document.file, root, document.folder), tuple(over)


def apply_to_combination(root: Block, changes: tuple[Override, ...]) -> Block:
    """Return the merged fields `root` of one combination of levels with the overrides `changes` applied."""
    for change in changes:
        if change.applies_to(root):
            root = merge(root, nested_overlay(*change))
    return root


def check_used(document: Document, changes: tuple[Override, ...], combinations: list[Block]) -> None:
    """Raise SpecError if an override changes a job or cross traffic that exists in no combination of levels."""
    for change in changes:
        if not any(change.applies_to(root) for root in combinations):
            shelf, name, *_ = change.path
            known = list(dict.fromkeys(each for root in combinations for each in root.get(shelf, {})))
            hint = suggest(name, known)
            raise _error(
                document, ".".join(change.path), f"no {name} among {shelf}", list_choices(known) or "any", hint
            )


def _check(document: Document, name: str) -> None:
    head = name.split(".", maxsplit=1)[0]
    if head not in (*ONCE, *OVERLAYABLE):
        known = (*OVERLAYABLE, *ONCE)
        hint = suggest(head, known)
        if paths := _paths_of(name, document.root):
            hint = f"did you mean {' or '.join(paths)}?"
        if name == "variant" or name in _factors(document.root):
            hint = "--only chooses levels"
        raise _error(document, name, f"the unknown field '{head}'", f"one of {list_choices(known)}", hint)
    below = [factor for factor in _factors(document.root) if factor.startswith(f"{name}.")]
    if below and head not in ONCE:
        raise _error(document, name, f"it above the factor {below[0]}", f"levels of {below[0]}, or null for none")


def _paths_of(name: str, root: Block) -> list[str]:
    """Return the paths of fields and of the transport's parameters that are called `name`, one block below the file."""
    transport = root.get("transport")
    fields = {block: fields_at(Treatment, (block,)) for block in Treatment.model_fields}
    if isinstance(transport, Block) and transport.get("name") in transport_names():
        declared = find_declaration(transport["name"])
        fields["transport"] = [each.name for each in declared.parameters] if declared else []
    return [f"{block}.{name}" for block, names in fields.items() if name in names]


def _file_overlay(root: Block, name: str, change: Override) -> Block | None:
    """Return the overlay on the file that makes an override, unless it is one of every level."""
    head, *rest = change.path
    if isinstance(_factors(root).get(name), Items):
        levels = change.value
        if levels is not None and not isinstance(levels, Items):
            levels = Items([levels], [change.mark] if change.mark else [])
        return nested_overlay(("factors", name), levels, change.mark)
    if head == "factors" and isinstance(change.value, Items):
        return nested_overlay(("factors", ".".join(rest)), change.value, change.mark)
    return nested_overlay(*change) if head in ONCE else None


def _factors(root: Block) -> Mapping[str, Any]:
    factors = root.get("factors")
    return factors if isinstance(factors, Block) else {}


def _error(document: Document, name: str, found: str, expected: str, hint: str | None = None) -> SpecError:
    return document.error((SET, name), found, expected, hint=hint)
