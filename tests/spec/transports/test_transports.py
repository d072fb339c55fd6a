# SPDX-License-Identifier: Apache-2.0
"""What a transport's source declares is read strictly, and holds in experiments; what was stored stays readable."""

import math
import re
import string
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from roundabout.spec import SpecError, Transport
from roundabout.spec.assembly.merge import merge
from roundabout.spec.transports import Counter, Declaration, Derived, Parameter, registry
from roundabout.spec.transports.declarations import read_declaration
from tests.spec.transports.minimal_experiment import transport_of

pytestmark = pytest.mark.unit

WORDS = st.text(string.ascii_letters + " ,()/", min_size=1, max_size=30).filter(str.strip)
NAMES = st.from_regex(r"[A-Za-z][a-z_]{0,20}x", fullmatch=True)  # never one of C's words
BLANKS = st.sampled_from(["", " ", "\n  ", "/* PARAMETER(x); */", " // COUNTER(\n", "\n#define PARAMETER(x) \\\n  x\n"])
UNITS = st.sampled_from(["us", "bytes", "bytes/s", "2^-24", "segments"])


@st.composite
def parameters(draw: st.DrawFn) -> Parameter:
    least, value, most = sorted(draw(st.lists(st.floats(0, 250, width=32), min_size=3, max_size=3)))
    unit = draw(UNITS)
    chosen_by = draw(st.sampled_from(["experiment", "testbed", *(["line_rate"] if unit == "bytes/s" else [])]))
    return Parameter(draw(NAMES), unit, chosen_by, value, least, most, draw(WORDS), Path())


@st.composite
def counters(draw: st.DrawFn) -> Counter:
    name = draw(NAMES)
    return Counter(name, name, draw(UNITS), draw(WORDS))


DECLARED = st.lists(st.one_of(parameters(), counters()), max_size=6, unique_by=lambda each: each.name)


def words_of(each: Parameter | Counter | Derived) -> list[str]:
    if isinstance(each, Parameter):
        numbers = [repr(number) for number in (each.value, each.least, each.most)]
        words = ["__u32", each.name, f'"{each.unit}"', each.chosen_by, *numbers]
        return ["PARAMETER", *words, f'"{each.meaning}"']
    if isinstance(each, Counter):
        return ["COUNTER", "__u64", each.name, f'"{each.unit}"', f'"{each.meaning}"']
    return ["DERIVED", each.name, f'"{each.formula}"', f'"{each.meaning}"']


def for_people(each: Any) -> Any:
    return replace(each, name=f"{each.name}_mbps") if each.unit == "bytes/s" else each


def read(folder: Path, source: str, name: str = "mine") -> Declaration:
    path = folder / f"{name}.bpf.c"
    path.write_text(source)
    return read_declaration(path)


@given(declared=DECLARED, data=st.data())
def test_declarations_are_read_in_any_layout(
    declared: list[Parameter | Counter], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    def blank() -> str:
        return data.draw(BLANKS)

    source = '#include "transport.h"\nchar note[] = "PARAMETER(of text)";\n'
    for each in declared:
        word, *arguments = words_of(each)
        inside = ",".join(f"{blank()}{argument}{blank()}" for argument in arguments)
        source += f"{blank()}{word}{blank()}({inside}){blank()};\n"
    found = read(tmp_path_factory.mktemp("source"), source)
    assert [*found.parameters] == [for_people(each) for each in declared if isinstance(each, Parameter)]
    assert [*found.counters] == [for_people(each) for each in declared if isinstance(each, Counter)]
    assert found.stands_for == "TCP"


GOOD = (
    'PARAMETER(__u32, T_us, "us", experiment, 125, 1, 1000, "period");\nCOUNTER(__u64, acks, "segments", "received");\n'
)


@pytest.mark.parametrize(
    ("passage", "replacement", "line", "found", "expected"),
    [
        ("T_us, ", "", 1, "PARAMETER with 7 arguments", "8: PARAMETER(type, name, unit"),
        ("125", "125 * 2", 1, "PARAMETER with something else", "PARAMETER(type"),
        ("125", "sizeof(int)", 1, "PARAMETER( __u32", "PARAMETER(type"),
        ("125", "MANY", 1, "MANY", "a plain number"),
        ("125", "inf", 1, "inf", "a plain number"),
        ("125", "1001", 1, "the value 1001 with the range 1 to 1000", "a value within it"),
        ("1000", "5e9", 1, "the range 1 to 5e+09", "within 0 to 4.29497e+09"),
        (" 1,", " -1,", 1, "the range -1", "within 0"),
        ("__u32", "int", 1, "the type int", "__u32 or __u64"),
        ("experiment", "nobody", 1, "'nobody'", "experiment, testbed, line_rate"),
        ("experiment", "line_rate", 1, "line_rate with the unit", "bytes/s"),
        ('"us", experiment', '"bytes", network', 1, "network with the unit", '"us"'),
        ('"us"', "us", 1, "the unit us", "a text"),
        ('"us"', '"a;b"', 1, 'the unit "a;b"', "without ';'"),
        ('"period"', '""', 1, 'the meaning ""', "a text"),
        ("T_us", "7_us", 1, "the name 7_us", "a name of C"),
        ('"received");', '"received")', 2, "COUNTER with something else", "COUNTER(type"),
        ("COUNTER", 'COUNTER(__u64, acks, "segments", "too");\nCOUNTER', 3, "acks a second time", "each name once"),
        ("COUNTER", 'DERIVED(x, "acks + T_us", "y");\nCOUNTER', 2, 'formula "acks + T_us"', "joined by * and /"),
        ("COUNTER", 'DERIVED(x, "acks * gone", "y");\nCOUNTER', 2, "gone in the formula of x", "one of T_us, acks"),
        ("COUNTER", 'CHOICE(c, experiment, b, "a", "z");\nCOUNTER', 2, 'the names "a"', "first second"),
        ("COUNTER", 'CHOICE(c, experiment, d, "a b", "z");\nCOUNTER', 2, "the value d", "one of a, b"),
        ("COUNTER", 'CHOICE(c, nobody, a, "a b", "z");\nCOUNTER', 2, "'nobody'", "experiment, testbed, line_rate"),
        ("COUNTER", 'RULE(r, "T_us < T_us");\nCOUNTER', 2, 'the rule "T_us < T_us"', "not both are 0"),
        ("COUNTER", 'RULE(r, "T_us or gone");\nCOUNTER', 2, "gone in a rule", "one of T_us, compute_us"),
        ("COUNTER", "STANDS_FOR(RDMA);\nSTANDS_FOR(TCP);\nCOUNTER", 3, "STANDS_FOR a second time", "it once"),
        ("COUNTER", "MEANT_FOR(step);\nMEANT_FOR(step);\nCOUNTER", 3, "MEANT_FOR a second time", "it once"),
        ("COUNTER", "MEANT_FOR(deep);\nCOUNTER", 2, "the queue deep", "one of thresholds, step, drop_tail"),
    ],
)
def test_a_fault_in_a_declaration_is_named_with_its_line(  # noqa: PLR0917
    tmp_path: Path, passage: str, replacement: str, line: int, found: str, expected: str
) -> None:
    assert read(tmp_path, GOOD).parameters[0].name == "T_us"
    assert passage in GOOD
    with pytest.raises(SpecError) as caught:
        read(tmp_path, GOOD.replace(passage, replacement, 1))
    assert (caught.value.line, caught.value.file) == (line, str(tmp_path / "mine.bpf.c"))
    assert found in caught.value.found
    assert expected in caught.value.expected


def test_declarations_may_stand_in_headers_beside_the_program(tmp_path: Path) -> None:
    (tmp_path / "mine.h").write_text(GOOD)
    (tmp_path / "flow.h").write_text('#include "mine.h"\n')
    source = '#include "transport.h"\n#include "flow.h"\n#include "mine.h"\nSTANDS_FOR(RDMA);\n'
    found = read(tmp_path, source + 'DERIVED(per_T, "acks * T_us", "x");')
    assert [each.name for each in found.parameters] == ["T_us"]
    assert (found.stands_for, [each.name for each in found.derived]) == ("RDMA", ["per_T"])


DCQCN = {each.name: each for each in (registry.find_declaration("dcqcn") or pytest.fail("none")).parameters}


GIVEN = sorted(name for name, each in DCQCN.items() if not each.names and each.chosen_by != "network")


def test_a_delay_of_the_network_is_not_an_experiments(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="found the unknown field 'cnp_delay_us', expected one of T_us"):
        transport_of(tmp_path, "{name: dcqcn, cnp_delay_us: 5}")


@given(name=st.sampled_from(GIVEN), share=st.floats(-0.1, 1.1))
def test_a_value_is_taken_just_where_it_is_within_its_range(
    name: str, share: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    parameter = DCQCN[name]
    value: float = parameter.least + share * (parameter.most - parameter.least)
    value = round(value) if parameter.is_whole else round(value, 6)
    folder = tmp_path_factory.mktemp("experiment")
    link = ", R_max_mbps: 1000000000" if name == "R_min_mbps" else ""  # else that of the host's link is the limit
    transport = f"{{name: dcqcn, {name}: {value if parameter.is_whole else format(value, 'f')}{link}}}"
    if parameter.least <= value <= parameter.most:
        found = transport_of(folder, transport).parameters
        assert math.isclose(found[name], value, rel_tol=1e-6, abs_tol=1e-6)
        assert {"T_us", name} | ({"R_max_mbps"} if link else set()) == set(found)
    else:
        expected = f"transport.{name}: found .* from {parameter.least:g} to {parameter.most:g} "
        with pytest.raises(SpecError, match=re.escape(expected).replace(r"\.\*", ".*")):
            transport_of(folder, transport)


def test_a_lowest_rate_above_the_highest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        SpecError, match=r"transport.R_min_mbps: found 7, with R_max_mbps 5, expected R_min_mbps no high"
    ):
        transport_of(tmp_path, "{name: dcqcn, R_min_mbps: 7, R_max_mbps: 5}")


@pytest.mark.parametrize(
    ("written", "field", "found", "expected"),
    [
        ("shape: quadrat", "shape", "'quadrat'", "one of linear, quadratic, reciprocal, decreasing"),
        ("shape: 1", "shape", "1", "one of linear"),
        ("slope: -1", "slope", "-1", "a number from 0 to 100"),
        ("intercept: 0", "intercept", "0", "a number from 0.01 to 100"),
        ("learn: 0, gap_us: 5", "learn", "0, with learn 0", "one of iteration_bytes and learn"),
        ("learn: 0, iteration_bytes: 5", "learn", "0, with learn 0", "one of gap_us and learn"),
        ("gap_us: 57001", "gap_us", "57001, with compute_us 57000", "gap_us no higher than compute_us"),
    ],
)
def test_a_setting_with_which_mltcp_could_not_work_is_refused_by_name(
    tmp_path: Path, written: str, field: str, found: str, expected: str
) -> None:
    for name in ("mltcp_reno", "mltcp_cubic", "mltcp_dctcp", "mltcp_dcqcn"):
        with pytest.raises(SpecError) as caught:
            transport_of(tmp_path, f"{{name: {name}, {written}}}")
        assert caught.value.field and caught.value.field.endswith(f"transport.{field}")
        assert caught.value.found.startswith(found)
        assert expected in caught.value.expected


def test_a_choice_is_known_by_its_name(tmp_path: Path) -> None:
    found = transport_of(tmp_path, "{name: mltcp_dcqcn, acts_on: additive, slope: 1, intercept: 1}").parameters
    assert (found["shape"], found["acts_on"], found["count_by"]) == ("linear", "additive", "host")
    assert (found["slope"], found["gap_us"], found["T_us"]) == (1.0, 0.0, 125.0)


def test_a_block_from_another_file_replaces_the_whole() -> None:
    named, from_file = {"name": "dcqcn", "T_us": 100}, {"file": "./a.bpf.c", "slope": 2}
    assert merge(named, from_file) == from_file
    assert merge(from_file, named) == named
    assert merge(from_file, {"slope": 3}) == {"file": "./a.bpf.c", "slope": 3}
    assert merge(from_file, {"file": "./b.bpf.c"}) == {"file": "./b.bpf.c"}


UNSET = dict.fromkeys(["byte_counter_bytes", "F", "R_AI_mbps", "g", "R_max_mbps"])


@pytest.mark.parametrize(
    ("stored", "parameters", "stands_for"),
    [
        ({"name": "dcqcn", "T_us": 125.0, **UNSET}, {"T_us": 125.0}, "RDMA"),
        ({"name": "cubic", "T_us": None, **UNSET}, {}, "TCP"),
        ({"name": "gone", "file": "/gone.bpf.c", "stands_for": "RDMA", "slope": 1.75}, {"slope": 1.75}, "RDMA"),
    ],
)
def test_transports_of_stored_runs_are_read(
    stored: dict[str, Any], parameters: dict[str, float], stands_for: str
) -> None:
    found = Transport.model_validate(stored)
    assert (found.parameters, found.stands_for) == (parameters, stands_for)
    assert Transport.model_validate_json(found.model_dump_json()) == found
