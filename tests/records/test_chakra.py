# SPDX-License-Identifier: Apache-2.0
"""Chakra's execution traces: what its own tools write, and jobs that are written with start times and read back."""

import gzip
import json
import re
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from analysis.records.call import Call, RecordError
from analysis.records.readers import chakra
from tests.records.record_writers import (
    COMM_TYPES,
    INT64,
    MESSAGES,
    UINT64,
    bytes_field,
    et,
    groups_node,
    metadata,
    node,
    number_field,
    varint,
)

pytestmark = pytest.mark.unit

EXAMPLES = Path(__file__).with_name("examples") / "chakra"
SCHEMA = "1.1.1-chakra.0.0.4"
MEMBERS = {"0": (0, 1, 2, 3), "7": (3, 1)}
GATHER = Call("all-gather", "0", None, 3, 4, 4 * 2**20, 5_000_000, 9_000_000)
REDUCE = Call("all-reduce", "7", None, 0, 2, 2**24, 11_000_000, 19_000_000)
SENT = Call("send", "7", None, 0, 2, 2**20, 21_000_000, 22_000_000, peer=1)


def written(calls, schema=SCHEMA, members=MEMBERS, **how) -> bytes:
    return et([metadata(schema), groups_node(members), *(node(call, members, **how) for call in calls)])


@pytest.fixture
def read(tmp_path):
    """Reads bytes as the trace of rank 3."""

    def reading(content: bytes, name: str = "trace.3.et"):
        path = tmp_path / name
        path.write_bytes(content)
        assert chakra.recognizes(content)
        return chakra.read(path)

    return reading


def test_examples_are_recognized():
    assert all(chakra.recognizes(path.read_bytes()) for path in EXAMPLES.iterdir())


@pytest.mark.parametrize("schema", chakra.SCHEMAS[:-1])
def test_converted_traces_without_start_times_are_refused(schema):
    with pytest.raises(RecordError, match="found no start_time_micros in 3 COMM nodes"):
        chakra.read(EXAMPLES / f"converted-{schema}.0.et")


def test_generated_traces_are_refused():
    with pytest.raises(RecordError, match="schema: found '1.0.0' \\(only what Chakra's generator makes up"):
        chakra.read(EXAMPLES / "generated-1.0.0.0.et")


@pytest.mark.parametrize("name", ["timed.0.et", "timed.0.json"])
def test_the_libraries_own_encoding_and_the_jsonizer_s_are_read_alike(name):
    record = chakra.read(EXAMPLES / name)
    # 6,553,600, 1,048,576 and 2,097,152 floats a rank, of which the second is a part of what two ranks gather.
    assert [(call.kind, call.payload_bytes) for call in record.calls] == [
        ("all-reduce", 4 * 6553600),
        ("all-gather", 2 * 4 * 1048576),
        ("reduce-scatter", 4 * 2097152),
    ]
    assert [call.begin_ns for call in record.calls] == [1760000000 * 10**9 + at * 10**7 for at in range(3)]
    assert {call.end_ns - call.begin_ns for call in record.calls} == {3_100_000}
    assert (record.rank, record.world, record.members) == (0, 2, {"0": (0, 1)})


@pytest.mark.parametrize("size", [INT64, UINT64], ids=["since 2024-10", "before 2024-10"])
@pytest.mark.parametrize("schema", chakra.SCHEMAS[:-1])
def test_a_trace_with_start_times_is_read(schema, size, read):
    record = read(written([GATHER, REDUCE, SENT], schema, size=size))
    assert record.calls == (GATHER, REDUCE, SENT)
    assert (record.rank, record.world, record.members, record.lost) == (3, 4, MEMBERS, 0)


def test_the_version_of_a_trace_without_a_source_is_its_own_field(read):
    content = written([REDUCE]).removeprefix(et([metadata(SCHEMA)]))
    assert read(et([bytes_field(1, b"0.0.4")]) + content).calls == (REDUCE,)


@pytest.mark.parametrize("length", [b"\n", b" ", b"{"], ids=repr)
def test_a_trace_whose_first_length_is_a_character_of_json_is_read(length, read):
    first = bytes_field(1, b"0.0.4") + bytes_field(9, bytes(length[0] - 9))
    assert len(first) == length[0]
    assert read(length + first + et([groups_node(MEMBERS), node(REDUCE, MEMBERS)])).calls == (REDUCE,)


def test_a_packed_trace_is_read(tmp_path):
    path = tmp_path / "trace.3.et.gz"
    path.write_bytes(gzip.compress(written([GATHER])))
    assert chakra.read(path).calls == (GATHER,)


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ("1.0.1", "Chakra's own converter refuses it"),
        ("1.1.1-chakra.1.0.0", "Chakra's converter 1.0.0 lists it and fails"),
        ("9.9.9-chakra.0.0.4", "expected one of 1.0.2-chakra.0.0.4"),
    ],
)
def test_other_chakra_schemas_are_refused_by_name(schema, why, read):
    with pytest.raises(RecordError) as refused:
        read(written([GATHER], schema))
    assert f"schema: found '{schema}'" in refused.value.message
    assert why in refused.value.message


def test_without_start_times_the_kineto_trace_is_required(read):
    with pytest.raises(RecordError, match="found no start_time_micros in 2 COMM nodes") as refused:
        read(written([GATHER, REDUCE], timed=False))
    assert "Kineto" in (refused.value.hint or "")


def test_a_trace_of_gloo_has_no_node_to_read(read):
    with pytest.raises(RecordError, match="found no COMM node, expected some"):
        read(written([]))


def test_the_rank_is_in_the_name(read):
    with pytest.raises(RecordError, match="found a file name without a rank"):
        read(written([GATHER]), "trace.et")
    with pytest.raises(RecordError, match="process group '7': found no rank 2 in it"):
        read(written([REDUCE]), "trace.2.et")


def test_nodes_that_cannot_be_calls_are_left_out_and_counted(read):
    untimed = node(REDUCE, MEMBERS, timed=False)
    scatter = number_field(3, 7) + number_field(6, 5)
    record = read(written([GATHER]) + et([untimed, scatter]))
    assert (record.calls, record.lost) == ((GATHER,), 2)
    assert record.losses == ("1 left out: comm_type none.", "1 left out: no start_time_micros.")


def test_a_group_that_is_not_listed_is_refused(read):
    content = et([metadata(SCHEMA), groups_node({"0": (0, 1, 2, 3)}), node(REDUCE, MEMBERS)])
    with pytest.raises(RecordError, match="found '7', expected a listed group: '0'"):
        read(content)


@pytest.mark.parametrize("ranks", [(3, 3), (3, -1), (3, 1 << 20)], ids=str)
def test_a_group_s_ranks_are_distinct_and_few(ranks, read):
    with pytest.raises(RecordError, match="process group '7': found no list of distinct ranks"):
        read(written([GATHER], members={"0": (0, 1, 2, 3), "7": ranks}))


def test_a_trace_that_was_cut_off_is_refused(read):
    content = written([GATHER, REDUCE])
    with pytest.raises(RecordError, match="message 3: found [0-9]+ bytes, expected"):
        read(content[:-1])


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (varint(2**28 + 1), "message 2: found 268435457 bytes, expected 268435456 at most"),
        (b"\xff" * 10, "message 2: found a length without end, expected one of 10 bytes at most"),
        (et([bytes_field(2, b"name")[:-1]]), "message 2: found no Node, expected one: damaged, or none of Chakra"),
    ],
    ids=["oversize", "endless length", "cut inside"],
)
def test_a_damaged_message_is_refused(message, error, read):
    with pytest.raises(RecordError, match=rf"trace\.3\.et: {error}"):
        read(et([metadata(SCHEMA), groups_node(MEMBERS)]) + message)


def jsonized(content: bytes) -> str:
    """As chakra_jsonizer prints it: objects run together, numbers of 64 bits as text."""
    calls = [GATHER, REDUCE, SENT]
    first = {"attr": [{"name": "schema", "stringVal": SCHEMA}]}
    listing = [{"pg_name": name, "ranks": list(ranks), "group_size": len(ranks)} for name, ranks in MEMBERS.items()]
    groups = {"id": "1", "name": "## process_group:init ##", "inputs": {"values": str([json.dumps(listing)])}}
    nodes = [
        {
            "id": str(number),
            "name": "ncclDevKernel",
            "type": "COMM_SEND_NODE" if call.kind == "send" else "COMM_COLL_NODE",
            "startTimeMicros": str(call.begin_ns // 1000),
            "durationMicros": str((call.end_ns - call.begin_ns) // 1000),
            "attr": [
                {"name": "comm_dst", "int32Val": 1}
                if call.kind == "send"
                else {"name": "comm_type", "int64Val": str(COMM_TYPES[call.kind])},
                {"name": "comm_size", "int64Val": str(call.payload_bytes // (4 if call.kind == "all-gather" else 1))},
                {"name": "pg_name", "stringVal": call.group},
            ],
        }
        for number, call in enumerate(calls, 2)
    ]
    return "".join(json.dumps(each, indent=2) for each in [first, groups, *nodes])


def test_json_with_the_schema_s_names_of_fields_is_read_alike(tmp_path):
    """Protobuf's MessageToJson writes these with preserving_proto_field_name, and its parsers accept both."""
    text = (EXAMPLES / "timed.0.json").read_text()
    named = re.sub(r'"(\w+)":', lambda found: re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", found[0]), text)
    assert all(f'"{name}":' in named for name in ("int64_val", "bool_val", "ctrl_deps", "duration_micros"))
    path = tmp_path / "timed.0.json"
    path.write_text(named)
    assert chakra.read(path).calls == chakra.read(EXAMPLES / "timed.0.json").calls


def test_a_number_that_is_not_whole_is_named_by_message_node_and_field(read):
    content = jsonized(b"").replace('"durationMicros": "4000"', '"durationMicros": 4000.5')
    with pytest.raises(
        RecordError, match=r"message 2, node '.+': durationMicros: found 4000\.5, expected a whole number"
    ):
        read(content.encode(), "trace.3.json")


def test_jsonized_traces_are_read_alike(read):
    content = jsonized(b"").encode()
    assert read(content, "trace.3.json").calls == (GATHER, REDUCE, SENT)
    with pytest.raises(RecordError, match="cut off, expected objects that run together"):
        read(content[:-2], "trace.3.json")


def test_traces_are_recognized():
    assert not chakra.recognizes(b"")
    assert not chakra.recognizes(b'{"version":1,"start_time":"","args":[]}')
    assert not chakra.recognizes(b'{"schemaVersion":1,"traceEvents":[]}')
    assert not chakra.recognizes(bytes(range(256)))


@st.composite
def jobs(draw) -> tuple[list[Call], dict[str, tuple[int, ...]]]:
    """Calls of rank 3 in groups that it is in."""
    others = st.lists(st.integers(4, 99), min_size=1, max_size=6, unique=True)
    groups = draw(st.lists(others, min_size=1, max_size=3))
    members = {str(name): (3, *ranks) for name, ranks in enumerate(groups)}
    calls, begin_us = [], draw(st.integers(1, 2**50))
    for _ in range(draw(st.integers(1, 20))):
        group = draw(st.sampled_from(list(members)))
        kind = draw(st.sampled_from([*COMM_TYPES, *MESSAGES]))
        ranks = len(members[group])
        parts = ranks if kind == "all-gather" else 1
        end_us = begin_us + draw(st.integers(1, 10**6))
        calls.append(
            Call(
                kind=kind,
                group=group,
                number=None,
                rank=0,
                ranks=ranks,
                payload_bytes=draw(st.integers(0, 2**40)) * parts,
                begin_ns=begin_us * 1000,
                end_ns=end_us * 1000,
                peer=draw(st.integers(1, ranks - 1)) if kind in MESSAGES else None,
            )
        )
        begin_us = end_us + draw(st.integers(1, 10**6))
    return calls, members


@given(job=jobs())
def test_a_written_chakra_trace_is_read_back(job, tmp_path_factory):
    calls, members = job
    path = tmp_path_factory.mktemp("trace") / "trace.3.et"
    path.write_bytes(written(calls, members=members))
    record = chakra.read(path)
    assert list(record.calls) == calls
    assert (record.members, record.lost) == (members, 0)
