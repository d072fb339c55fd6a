# SPDX-License-Identifier: Apache-2.0
"""The strict readers of YAML and JSON: a value as it was written, or one complaint with its place."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from roundabout.spec import SpecError
from roundabout.spec.reader import json_source, yaml_source
from tests.damage.mutator import assert_one_message

pytestmark = pytest.mark.unit

NUMBERS = st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda parts: st.lists(parts, max_size=4) | st.dictionaries(st.text(max_size=3), parts, max_size=4),
    max_leaves=12,
)
WORDS = ["{", "}", "[", "]", ",", ":", '"a"', '"a":1', "NaN", "1e999", "-7", "null", '"\\ud800"', '"\n"', "tru", "1x"]


@given(VALUES, st.sampled_from([None, 1]), st.booleans())
def test_json_is_read_as_the_standard_library_reads_it(value: Any, indent: int | None, escaped: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=escaped)
    assert json_source.parse(text, "f.json").root == value


@given(VALUES)
def test_each_place_in_json_is_found(value: Any) -> None:
    content = json_source.parse(json.dumps(value, indent=1), "f.json")
    lines = content.text.split("\n")

    def look(part: Any, location: tuple[str | int, ...]) -> None:
        mark = content.find(location)
        assert mark and mark.line
        if location and isinstance(location[-1], str):
            assert lines[mark.line - 1].lstrip().startswith(json.dumps(location[-1]) + ": ")
        for step, inner in (
            part.items() if isinstance(part, dict) else enumerate(part if isinstance(part, list) else ())
        ):
            look(inner, (*location, step))

    look(value, ())


@given(st.lists(st.sampled_from(WORDS), max_size=12).map("".join) | st.text(max_size=20))
def test_any_text_is_read_as_json_or_refused_in_one_line(text: str) -> None:
    try:
        value = json_source.parse(text, "f.json").root
    except SpecError as error:
        assert_one_message(error, "f.json")
    else:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
        assert value == json.loads(text)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"a": [1, {"b": 2,\n"b": 3}]}', "f.json:2: a[1].b: found the key 'b' a second time (first in line 1)"),
        ('{"b": {"b": 1},\n"a": {}, "b": 2}', "f.json:2: b: found the key 'b' a second time (first in line 1)"),
        ('{"a":\n[0, NaN]}', "f.json:2: a[1]: found 'NaN', expected a finite number"),
        ("-Infinity", "f.json:1: found '-Infinity', expected a finite number"),
        ('{"a": 1e999}', "f.json:1: a: found '1e999', expected a number below 1.8e308"),
        ("[" + "7" * 301 + "]", "expected 300 digits at most"),
        ("[" * 100_000, "found too deep a nesting"),
        ("", "f.json:1: found the end, expected valid JSON (expecting value)"),
        ('{"a": "x\n"}', "f.json:1: found '\\n', expected valid JSON (invalid control character)"),
        ('{"a": "x', "f.json:1: found '\"x', expected valid JSON (unterminated string)"),
        ("{}\n{}", "f.json:2: found '{}', expected valid JSON (extra data)"),
        ('{"a": 1,\n}', "f.json:2: found '}', expected valid JSON (expecting property name"),
        ('["\\ud83d\\ude00",\n"\\ud83d"]', "f.json:2: [1]: found half of a surrogate pair, expected whole characters"),
    ],
)
def test_a_complaint_about_json_names_the_place(text: str, complaint: str) -> None:
    with pytest.raises(SpecError) as caught:
        json_source.parse(text, "f.json")
    assert complaint in caught.value.message


def test_the_lines_of_json_in_a_table_are_those_of_the_table() -> None:
    with pytest.raises(SpecError, match="t.csv:8: found 'x]'"):
        json_source.parse("[1,\nx]", "t.csv", line=7)


@pytest.mark.parametrize("name", ["f.json", "f.yaml"])
def test_bytes_that_are_no_utf8_are_named_by_line(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b'{"a": 1,\n"\xff": 2}')
    with pytest.raises(SpecError, match=":2: found the byte 0xff, expected UTF-8 text"):
        read(path, 100)
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}')
    assert read(path, 100) == {"a": 1}
    with pytest.raises(SpecError, match="found more than 10 bytes, expected 10 bytes at most"):
        read(path, 10)


def read(path: Path, most_bytes: int) -> Any:
    reader = json_source.read if path.suffix == ".json" else yaml_source.load_yaml
    return reader(path, most_bytes).root


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (
            "on: 1\ntrue: off\n1: ~\n~: 007\n2020-01-01: 1e5",
            "{'on': '1', 'true': 'off', '1': '~', '~': '007', '2020-01-01': '1e5'}",
        ),
        ("- 1\n- [no, 1:30]", "['1', ['no', '1:30']]"),
        ("a:", "{'a': ''}"),
    ],
)
def test_a_file_of_names_is_text_as_written(tmp_path: Path, text: str, value: str) -> None:
    (tmp_path / "f.yaml").write_text(text)
    assert repr(yaml_source.load_yaml(tmp_path / "f.yaml", all_text=True).root) == value


@pytest.mark.parametrize(("text", "value"), [("- 1\n- [no, 1:30]", [1, ["no", "1:30"]]), ("on", "on"), ("", None)])
def test_yaml_of_any_shape_is_read(tmp_path: Path, text: str, value: Any) -> None:
    (tmp_path / "f.yaml").write_text(text)
    assert yaml_source.load_yaml(tmp_path / "f.yaml").root == value


@given(st.dictionaries(st.text(), VALUES, max_size=3))
@example({"a": "1e5", "08": ["08", "1_0", "on", "0x1f", "2020-01-01", "~", "", "\x85", "\ufeff"]})
def test_dumped_yaml_is_read_back(value: Any) -> None:
    found = yaml_source.parse(yaml_source.dump(value), "f.yaml").root
    assert json.dumps(found) == json.dumps(value)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("1: a\n'1': b", ":2: 1: found the key '1' a second time (first in line 1), expected each key once"),
        ("[a]: b", "found the key a list, expected text as a key"),
        ("? \n: b", "found the key , expected text as a key"),
        ("a: 1e999", ":1: a: found '1e999', expected a number of ordinary size"),
        ("- " + "7" * 301, ":1: [0]: found '7777"),
        ('a: "\\ud83d"', ":1: a: found half of a surrogate pair, expected whole characters"),
        ("a: *b", "found an alias"),
        ("a: 1\n---\nb: 2", ":3: found another document, expected a single document in the stream"),
        ("j: [n[1-3], n4]", ":1: found '[', expected ',' or ']'"),
        ("- a\nb", ":2: found none, expected ':'"),
        ("a: 'x", ":1: found unexpected end of stream, expected valid YAML"),
        ("a: 1\nb: x\0", ":2: found the character '\\x00', expected characters that print"),
        ("a: !x 1", "found the tag !x"),
    ],
)
def test_a_complaint_about_yaml_names_the_place(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "f.yaml").write_text(text)
    with pytest.raises(SpecError) as caught:
        yaml_source.load_yaml(tmp_path / "f.yaml", all_text=":2: 1:" in complaint)
    assert complaint in caught.value.message


@given(st.integers(-(10**320), 10**320) | st.floats(allow_nan=False))
def test_numbers_are_read_exactly_or_refused_if_infinite(value: float) -> None:
    text = json.dumps({"a": value}).replace("Infinity", "2e308")
    for read_number in (lambda: json_source.parse(text, "f").root["a"], lambda: yaml_source.parse(text, "f").root["a"]):
        try:
            found = read_number()
        except SpecError:
            assert abs(value) >= 10**299
        else:
            assert found == value and math.isfinite(float(found))
