# SPDX-License-Identifier: Apache-2.0
"""Strict reader of JSON: unique keys, finite numbers, bounded nesting. Errors name the line and the field.

The standard library's scanner reads the text, because traces are large files. Places of values are only searched for
an error's message.
"""

import json
import re
from collections.abc import Callable, Iterator
from json import JSONDecodeError
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from roundabout.spec.errors import SpecError, shorten
from roundabout.spec.reader.yaml_source import (
    Block,
    Content,
    Mark,
    dotted_path,
    parse_finite_number,
    parse_whole_number,
    read_text,
    shown_path,
)

Location = tuple[str | int, ...]

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_TO_PLACE = re.compile(r"( starting)? at$|: $")  # the end of a message that a place follows
_TO_COME = ""  # stands for a key that was not reached yet


class JsonContent(Content):
    """The content of a JSON file. It finds the places of values by scanning the text again."""

    def __init__(self, file: str, root: Any, text: str, line: int = 1) -> None:
        """Take the value `root` of `text`, which begins in the line `line` of `file`."""
        super().__init__(file, root)
        self.text = text
        self.line = line

    def find(self, location: Location, root: Block | None = None) -> Mark | None:  # noqa: ARG002 - blocks are YAML's
        """Return the place of the value at `location` below `root`, or of its nearest enclosing value that exists."""
        nearest: Location = ()
        at = 0
        for place in _places(self.text):
            depth = len(place.location)
            if depth > len(nearest) and place.location == location[:depth]:
                nearest, at = place.location, place.at
            if nearest == location:
                break
        return Mark(self.line_of(at), dotted_path(nearest))

    def line_of(self, at: int) -> int:
        """Return the line number in the file, from 1, of the character at offset `at` of the text."""
        return self.line + self.text.count("\n", 0, at)


def read(path: Path, most_bytes: int) -> JsonContent:
    """Read a JSON file. Raises SpecError if it is missing, invalid, or larger than `most_bytes`."""
    file = shown_path(path)
    return parse(read_text(path, file, most_bytes), file)


def parse(text: str, file: str, line: int = 1) -> JsonContent:
    """Parse JSON text that begins in line `line` of `file`. Raises SpecError if the text is invalid."""
    try:
        root = json.loads(
            text,
            object_pairs_hook=_mapping,
            parse_int=_number(parse_whole_number),
            parse_float=_number(parse_finite_number),
            parse_constant=_refused_constant,
        )
    except JSONDecodeError as error:
        near = text[error.pos : error.pos + 20]
        line_of_it = near.partition("\n")[0] or "\\n"
        found = f"'{line_of_it}'" if near else "the end"
        problem = _TO_PLACE.sub("", error.msg[:1].lower() + error.msg[1:])
        raise SpecError(file, found, f"valid JSON ({problem})", line=line + error.lineno - 1) from None
    except RecursionError:
        raise SpecError(file, "too deep a nesting", "at most some hundred levels") from None
    except _OddKeyError as odd:
        _refuse_key(JsonContent(file, None, text, line), odd.key)
    except _OddNumberError as odd:
        _refuse_number(JsonContent(file, None, text, line), odd)
    content = JsonContent(file, root, text, line)
    if _SURROGATE.search(text):
        _check_characters(content)
    return content


class _OddKeyError(Exception):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


class _OddNumberError(Exception):
    def __init__(self, word: str, expected: str) -> None:
        super().__init__(word)
        self.word = word
        self.expected = expected


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _OddKeyError(next(key for key in keys if keys.count(key) > 1))
    return mapping


def _number(read: Callable[[str], float]) -> Callable[[str], float]:
    def read_or_refuse(word: str) -> float:
        try:
            return read(word)
        except ValueError as error:
            raise _OddNumberError(word, str(error)) from None

    return read_or_refuse


def _refused_constant(word: str) -> NoReturn:
    raise _OddNumberError(word, "a finite number")


class _Place(NamedTuple):
    """A key or a value: its `word` in the text, which begins at the character `at`."""

    location: Location
    at: int
    word: str
    is_key: bool


def _places(text: str) -> Iterator[_Place]:
    """Yield the places of all keys and values of JSON text, as far as it is valid, in their order."""
    way: list[str | int] = []
    opened: list[str] = []
    is_key_next = False
    for token in _TOKEN.finditer(text):
        word = token[0]
        if word in ("}", "]"):
            opened.pop()
            way.pop()
        elif word == ",":
            step = way[-1]
            way[-1] = step + 1 if isinstance(step, int) else _TO_COME
            is_key_next = opened[-1] == "{"
            continue
        elif word == ":":
            continue
        else:
            if is_key_next:
                way[-1] = json.loads(word)
            yield _Place(tuple(way), token.start(), word, is_key_next)
            if word in ("{", "["):
                opened.append(word)
                way.append(_TO_COME if word == "{" else 0)
                is_key_next = word == "{"
                continue
        is_key_next = False


def _refuse_key(content: JsonContent, key: str) -> NoReturn:
    first: dict[Location, int] = {}
    for place in _places(content.text):
        if place.is_key and place.location[-1] == key:
            if place.location in first:
                found = f"the key '{key}' a second time (first in line {content.line_of(first[place.location])})"
                line = content.line_of(place.at)
                raise SpecError(content.file, found, "each key once", field=dotted_path(place.location), line=line)
            first[place.location] = place.at
    raise AssertionError("a key that the scanner found twice is there twice")


def _refuse_number(content: JsonContent, odd: _OddNumberError) -> NoReturn:
    place = next(each for each in _places(content.text) if not each.is_key and each.word.startswith(odd.word))
    field, line = dotted_path(place.location), content.line_of(place.at)
    raise SpecError(content.file, f"'{shorten(odd.word)}'", odd.expected, field=field, line=line)


def _check_characters(content: JsonContent) -> None:
    for place in _places(content.text):
        if _SURROGATE.search(place.word) and any("\ud800" <= each <= "\udfff" for each in json.loads(place.word)):
            field, line = dotted_path(place.location), content.line_of(place.at)
            raise SpecError(content.file, "half of a surrogate pair", "whole characters", field=field, line=line)
