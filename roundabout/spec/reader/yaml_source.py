# SPDX-License-Identifier: Apache-2.0
"""Reader of YAML into plain data that stores the place of each value (`json_source` does the same for JSON).

The subset is small on purpose: mappings with unique text keys, lists, text, decimal numbers, true, false and null.
Values that other YAML readers guess (`no` as false, `1:30` as ninety, dates) stay text; aliases and tags are refused.
"""

import math
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import yaml

from roundabout.spec.errors import SpecError

MAX_BYTES = 6_000_000  # limit of a file; the longest are stored runs on 4,096 hosts with eight NICs each
MAX_DEPTH = 24
MAX_DIGITS = 300  # limit of a whole number's digits; `float` raises OverflowError above 1.8e308


_EXPECTED = re.compile(r"(?:expected (?P<expected>.+), )?but (?:found|got) (?P<found>.+)")
"""PyYAML's problems that say both; of some the context says what was expected."""

_READ_DIFFERENTLY = re.compile(r"[\t\r?!\x85\u2028\u2029\ufeff]|[>|][-+0-9]*#")  # by PyYAML and libyaml


class Mark(NamedTuple):
    """A place in a file: its line, counted from 1, and the dotted path of the field there.

    Or an option without a line.
    """

    line: int | None
    path: str


class Block(dict[str, Any]):
    """A mapping that stores its own place in the file (`mark`) and the places of its values (`marks`)."""

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        super().__init__(values or {})
        self.mark: Mark | None = getattr(values, "mark", None)
        self.marks: dict[str, Mark] = dict(getattr(values, "marks", {}))

    def put(self, key: str, value: object, mark: Mark | None) -> None:
        """Set `key` to `value`. `mark` is the place of the value in its file, or None to leave the place as it is."""
        self[key] = value
        if mark is not None:
            self.marks[key] = mark


class Items(list[Any]):
    """A list that stores the places of its items in the file (`marks`)."""

    def __init__(self, values: Iterable[Any] = (), marks: Iterable[Mark] = ()) -> None:
        super().__init__(values)
        self.marks = list(marks)


class Content:
    """The content of a file, of any type, with the places of its values for error messages."""

    def __init__(self, file: str, root: Any, mark: Mark | None = None) -> None:
        """Take the value `root` of `file`, which stands at `mark` unless `root` has its own place."""
        self.file = file
        self.root = root
        self.mark: Mark | None = getattr(root, "mark", mark)

    def find(self, location: tuple[str | int, ...], root: Block | None = None) -> Mark | None:
        """Return the place of the value at `location` below `root`, or of its nearest enclosing value that exists."""
        value: Any = self.root if root is None else root
        mark = self.mark if root is None else root.mark
        for step in location:
            if isinstance(value, Block) and step in value:
                mark = value.marks.get(str(step), mark)
            elif not (isinstance(value, Items) and isinstance(step, int) and 0 <= step < len(value)):
                break
            elif step < len(value.marks):
                mark = value.marks[step]
            value = value[step]
        return mark

    def error(
        self,
        location: tuple[str | int, ...],
        found: str,
        expected: str,
        *,
        hint: str | None = None,
        root: Block | None = None,
    ) -> SpecError:
        """Return a SpecError about the value at `location` below `root`, which is the whole document by default."""
        mark = self.find(location, root)
        path = mark.path if mark and mark.path else dotted_path(location)
        return SpecError(self.file, found, expected, field=path, line=mark.line if mark else None, hint=hint)


class Document(Content):
    """The content of a file whose top level is a mapping."""

    root: Block

    def __init__(self, file: str, root: Block, folder: Path = Path()) -> None:
        """Take the mapping `root` of `file`. Names of files in it are relative to `folder`."""
        super().__init__(file, root)
        self.folder = folder


def dotted_path(location: tuple[str | int, ...]) -> str:
    """Return a location as a dotted path: `("jobs", "j1", "workers", 0)` gives `jobs.j1.workers[0]`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)
    return text.removeprefix(".")


def shown_path(path: Path) -> str:
    """Return `path` for messages: relative if it is below the working directory, else unchanged."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except (OSError, ValueError, RuntimeError):
        return str(path)


def open_without_waiting(path: str, flags: int) -> int:
    """Open a file as an `opener` of `open`. A pipe without a writer is read as empty, without blocking."""
    handle = os.open(path, flags | os.O_NONBLOCK)
    os.set_blocking(handle, True)
    return handle


def read_document(path: Path, shown_as: str | None = None) -> Document:
    """Read the YAML document in `path`. Messages name the file `shown_as`, or by its path.

    Raises SpecError if the file cannot be read or is outside the project's subset of YAML.
    """
    file = shown_as or str(path)
    return parse(read_text(path, file, MAX_BYTES), file, path.parent)


def load_yaml(path: Path, most_bytes: int = MAX_BYTES, *, all_text: bool = False) -> Content:
    """Read a YAML file whose top level may have any type. With `all_text`, scalars such as `007` and `on` stay text.

    Raises SpecError if the file cannot be read, is larger than `most_bytes`, or is outside the subset of YAML.
    """
    file = shown_path(path)
    node = _node(read_text(path, file, most_bytes), file)
    if node is None:
        return Content(file, None)
    builder = _Builder(file, all_text=all_text)
    return Content(file, builder.value(node, ()), builder.mark(node, ()))


def load_documents(path: Path) -> list[Content]:
    """Read all documents of a YAML file. Scalars such as `007` and `on` stay text.

    Raises SpecError if the file cannot be read or is outside the subset of YAML.
    """
    file = shown_path(path)
    builder = _Builder(file, all_text=True)
    nodes = _nodes(read_text(path, file, MAX_BYTES), file)
    return [Content(file, builder.value(node, ()), builder.mark(node, ())) for node in nodes]


def read_text(path: Path, file: str, most_bytes: int) -> str:
    """Return the text of a file. `file` is its name in messages.

    Raises SpecError if the file cannot be read, is larger than `most_bytes`, or is not UTF-8.
    """
    return decode(read_bytes(path, file, most_bytes), file)


def read_bytes(path: Path, file: str, most_bytes: int) -> bytes:
    """Return the bytes of a file. `file` is its name in messages.

    Raises SpecError if the file cannot be read or is larger than `most_bytes`.
    """
    try:
        with open(path, "rb", opener=open_without_waiting) as stream:
            content = stream.read(most_bytes + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        reason = "a folder" if isinstance(error, IsADirectoryError) else reason
        raise SpecError(file, reason.lower(), "a file that can be read") from None
    if len(content) > most_bytes:
        raise SpecError(file, f"more than {most_bytes} bytes", f"{most_bytes} bytes at most")
    return content


def decode(content: bytes, file: str) -> str:
    """Return the text in `content` without a byte order mark. Raises SpecError with the line if it is not UTF-8."""
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SpecError(file, f"the byte 0x{content[error.start]:02x}", "UTF-8 text", line=line) from None


def parse(text: str, file: str, folder: Path = Path()) -> Document:
    """Parse a YAML document from `text`. `file` is its name in messages, `folder` the base of relative paths in it.

    Raises SpecError for text outside the project's subset of YAML.
    """
    node = _node(text, file)
    if not isinstance(node, yaml.MappingNode):
        found = "an empty file" if node is None else _kind(node)
        raise SpecError(file, found, "a mapping of fields to values")
    return Document(file, _Builder(file).block(node, ()), folder)


def parse_whole_number(text: str) -> int:
    """Parse a whole number. Raises ValueError if `text` has more than MAX_DIGITS digits."""
    if len(text) > MAX_DIGITS:
        raise ValueError(f"{MAX_DIGITS} digits at most")
    return int(text)


def parse_finite_number(text: str) -> float:
    """Parse a number. Raises ValueError if the number is too large for a float."""
    value = float(text)
    if math.isinf(value):
        raise ValueError("a number below 1.8e308")
    return value


def parse_option(option: str, text: str) -> tuple[Any, Mark]:
    """Parse the YAML value of a command-line option. The mark names the option. Raises SpecError like `parse`."""
    try:
        node = _node(text, option)
    except SpecError as error:
        raise SpecError(option, error.found, error.expected) from None
    value = None if node is None else _Builder(option, numbered=False).value(node, (option,))
    return value, Mark(None, option)


def as_yaml(value: object, file: str) -> str:
    """Return the YAML that `parse` reads as this value.

    Raises SpecError, in which `file` names the place, for a value that YAML files cannot contain.
    """
    try:
        return dump(value)
    except yaml.YAMLError:
        kinds = "mappings, lists, texts, numbers, true, false and null"
        raise SpecError(file, "a value of another kind", kinds) from None


def dump(value: object, width: int = 80, *, flow_leaves: bool = False) -> str:
    """Return the YAML that is read as this value, wrapped at `width`. Raises yaml.YAMLError for other types.

    With `flow_leaves`, lists and mappings of scalars stand in flow style: `[s0, s1]`.
    """
    style = None if flow_leaves else False
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=width, default_flow_style=style)


def _node(text: str, file: str) -> yaml.Node | None:
    nodes = _nodes(text, file)
    if len(nodes) > 1:
        line = nodes[1].start_mark.line + 1
        raise SpecError(file, "another document", "a single document in the stream", line=line)
    return nodes[0] if nodes else None


def _nodes(text: str, file: str) -> list[yaml.Node]:
    try:
        return _compose(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else None
        if "'\\t'" in (error.problem or ""):
            raise SpecError(file, "a tab", "spaces, where YAML indents", line=line) from None
        raise SpecError(file, *_found_and_expected(error), line=line) from None
    except yaml.reader.ReaderError as error:
        character = error.character if isinstance(error.character, str) else chr(error.character)
        line = text.count("\n", 0, error.position) + 1
        raise SpecError(file, f"the character {character!r}", "characters that print", line=line) from None
    except yaml.YAMLError as error:
        raise SpecError(file, _one_line(str(error)), "valid YAML") from None
    except _RefusedError as refused:
        raise SpecError(file, refused.found, refused.expected, line=refused.line) from None


def _found_and_expected(error: yaml.MarkedYAMLError) -> tuple[str, str]:
    """Return what PyYAML found, and what it expected there."""
    problem = _one_line(error.problem or str(error)).replace("'<stream end>'", "the end")
    if parts := _EXPECTED.fullmatch(problem):
        context = _one_line(error.context or "").partition("expected ")[2]
        return parts["found"], parts["expected"] or context or "valid YAML"
    found, missing, expected = problem.removeprefix("found ").partition("could not find expected ")
    return ("none", expected) if missing else (found, "valid YAML")


def _compose(text: str) -> list[yaml.Node]:
    """Compose with libyaml. Compose with PyYAML, which is slower, what both read differently or libyaml refuses.

    `_nodes` explains the messages of PyYAML's own parser.
    """
    if FastLoader is not None and not _READ_DIFFERENTLY.search(text):
        with suppress(yaml.YAMLError, _RefusedError):
            return _get_nodes(FastLoader(text))
    return _get_nodes(_Loader(text))


def _get_nodes(loader: Any) -> list[yaml.Node]:
    nodes: list[yaml.Node] = []
    try:
        while loader.check_node():
            nodes.append(loader.get_node())
        return nodes
    finally:
        loader.dispose()


class _RefusedError(Exception):
    def __init__(self, found: str, expected: str, line: int) -> None:
        super().__init__(found)
        self.found = found
        self.expected = expected
        self.line = line


class _Composer(yaml.composer.Composer):
    """PyYAML's composer without aliases, and with a bound on depth."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event: yaml.Event = self.peek_event()  # type: ignore[attr-defined]
        line = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, yaml.AliasEvent):
            raise _RefusedError("an alias", "the value itself", line)
        if self.depth >= MAX_DEPTH:
            raise _RefusedError("too deep a nesting", f"at most {MAX_DEPTH} levels", line)
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


class _Resolver(yaml.resolver.BaseResolver):
    """The few implicit types that we read."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - PyYAML's own way


class _Loader(_Composer, yaml.reader.Reader, yaml.scanner.Scanner, yaml.parser.Parser, _Resolver):
    """PyYAML's parser below our composer."""

    def __init__(self, text: str) -> None:
        yaml.reader.Reader.__init__(self, text)
        yaml.scanner.Scanner.__init__(self)
        yaml.parser.Parser.__init__(self)
        _Composer.__init__(self)
        _Resolver.__init__(self)


FastLoader: Any = None
if yaml.__with_libyaml__:

    class FastLoader(_Composer, yaml.cyaml.CParser, _Resolver):  # type: ignore[no-redef,name-defined,misc]
        """Libyaml's parser below our composer."""

        def __init__(self, text: str) -> None:
            yaml.cyaml.CParser.__init__(self, text)  # type: ignore[attr-defined]
            _Composer.__init__(self)
            _Resolver.__init__(self)


class _Dumper(yaml.SafeDumper):
    """PyYAML's writer, which also quotes text that only our reader takes for a number, such as 1e5 and 08."""

    def represent_str(self, data: str) -> yaml.ScalarNode:
        """Escape text that does not print: some line breaks get lost in every other style."""
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=None if data.isprintable() else '"')


_Dumper.add_representer(str, _Dumper.represent_str)

for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?(0|[1-9][0-9_]*)", list("-+0123456789")),
    ("float", r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?", list("-+.0123456789")),
):
    for _class in (_Resolver, _Dumper):
        _class.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern})\\Z"), _first)


class _Builder:
    """Turns YAML nodes into Blocks, Items and scalars."""

    def __init__(self, file: str, *, numbered: bool = True, all_text: bool = False) -> None:
        self.file = file
        self.numbered = numbered
        self.all_text = all_text

    def mark(self, node: yaml.Node, location: tuple[str | int, ...]) -> Mark:
        return Mark(node.start_mark.line + 1 if self.numbered else None, dotted_path(location))

    def value(self, node: yaml.Node, location: tuple[str | int, ...]) -> object:
        if node.tag.removeprefix("tag:yaml.org,2002:") not in _READ:
            self.refuse(node, location, f"the tag {node.tag}", "a value without a tag")
        if isinstance(node, yaml.MappingNode):
            return self.block(node, location)
        if isinstance(node, yaml.SequenceNode):
            return self.items(node, location)
        return self.scalar(node, location)

    def block(self, node: yaml.MappingNode, location: tuple[str | int, ...]) -> Block:
        block = Block()
        block.mark = self.mark(node, location)
        for key_node, value_node in node.value:
            key = self.key(key_node, location)
            here = (*location, key)
            if key in block:
                first = block.marks[key].line
                self.refuse(key_node, here, f"the key '{key}' a second time (first in line {first})", "each key once")
            block.put(key, self.value(value_node, here), self.mark(key_node, here))
        return block

    def key(self, node: yaml.Node, location: tuple[str | int, ...]) -> str:
        is_name = isinstance(node, yaml.ScalarNode) and node.value != "" and self.all_text
        if node.tag.removeprefix("tag:yaml.org,2002:") not in _SCALARS or not (is_name or _is_text(node)):
            shown = node.value if isinstance(node, yaml.ScalarNode) else _kind(node)
            self.refuse(node, location, f"the key {shown}", "text as a key (quote it if it looks like a number)")
        return self.text(node, location)

    def text(self, node: yaml.Node, location: tuple[str | int, ...]) -> str:
        if any("\ud800" <= each <= "\udfff" for each in node.value):
            self.refuse(node, location, "half of a surrogate pair", "whole characters")
        return str(node.value)

    def items(self, node: yaml.SequenceNode, location: tuple[str | int, ...]) -> Items:
        items = Items()
        for index, child in enumerate(node.value):
            here = (*location, index)
            items.append(self.value(child, here))
            items.marks.append(self.mark(child, here))
        return items

    def scalar(self, node: yaml.Node, location: tuple[str | int, ...]) -> object:
        text = self.text(node, location)
        if self.all_text:
            return text
        try:
            return _READ[node.tag.removeprefix("tag:yaml.org,2002:")](text)
        except ValueError:
            self.refuse(node, location, f"'{text[:40]}'", "a number of ordinary size")

    def refuse(self, node: yaml.Node, location: tuple[str | int, ...], found: str, expected: str) -> NoReturn:
        mark = self.mark(node, location)
        raise SpecError(self.file, found, expected, field=mark.path, line=mark.line)


_READ: dict[str, Any] = {
    "map": None,
    "seq": None,
    "str": str,
    "null": lambda _: None,
    "bool": lambda text: text.lower() == "true",
    "int": lambda text: parse_whole_number(text.replace("_", "")),
    "float": lambda text: parse_finite_number(text.replace("_", "")),
}
_SCALARS = _READ.keys() - {"map", "seq"}


def _is_text(node: yaml.Node) -> bool:
    return node.tag == "tag:yaml.org,2002:str"


def _kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.ScalarNode):
        return f"the single value '{node.value[:40]}'"
    return "a mapping" if isinstance(node, yaml.MappingNode) else "a list"


def _one_line(text: str) -> str:
    return " ".join(text.split())
