# SPDX-License-Identifier: Apache-2.0
"""NCCL Inspector's logs: each published version's documented example, and jobs that are written and read back."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from analysis.records.call import Call, RecordError
from analysis.records.readers import inspector
from tests.records.record_writers import COLLECTIVES, MESSAGES, Inspector, member_of

pytestmark = pytest.mark.unit

EXAMPLES = Path(__file__).with_name("examples") / "inspector"
AT_US = 1752867229235181
TOOK_US = 40630
SEVERAL = ("v4.0-nccl-2.30", "v4.1", "v4.2", "v4.3", "v4.4")


@pytest.fixture
def read(tmp_path):
    """Reads bytes as a log."""

    def reading(content: bytes):
        path = tmp_path / "n1-pid42.log"
        path.write_bytes(content)
        return inspector.read(path)

    return reading


def edited(name: str, line: int, **fields) -> bytes:
    """An example whose line `line` has other fields: `coll_perf__coll_sn=...` is that of its `coll_perf`."""
    lines = [json.loads(each) for each in (EXAMPLES / f"{name}.log").read_bytes().splitlines()]
    for name_, value in fields.items():
        at, *path = name_.split("__")
        inner = lines[line]
        for step in path:
            inner, at = inner[at], step
        inner[at] = value
    return b"".join(json.dumps(each).encode() + b"\n" for each in lines)


@pytest.mark.parametrize("name", SEVERAL)
def test_the_documented_example_of_each_version_is_read(name):
    record = inspector.read(EXAMPLES / f"{name}.log")
    first, message, second = record.calls
    assert first == Call(
        kind="reduce-scatter",
        group="0xe62dedaa97644a",
        number=1231,
        rank=4,
        ranks=8,
        payload_bytes=8 * 2**31,
        begin_ns=AT_US * 1000,
        end_ns=(AT_US + TOOK_US) * 1000,
        hosts=1,
    )
    assert (message.kind, message.peer, message.payload_bytes, message.number) == ("receive", 3, 2**20, None)
    assert second.number == 1232
    assert (record.host, record.rank, record.world, record.members) == ("example-hostname", None, None, {})
    assert record.lost == (512 if name == "v4.1" else 0)


def test_before_2_30_the_collectives_between_two_dumps_are_lost():
    record = inspector.read(EXAMPLES / "v4.0-nccl-2.28.log")
    assert [call.number for call in record.calls] == [1231, 1234]
    assert record.lost == 2
    assert any("before 2.30" in note for note in record.notes)
    assert not any("before 2.30" in note for note in inspector.read(EXAMPLES / "v4.0-nccl-2.30.log").notes)


@pytest.mark.parametrize("release", ["2.28.3", "2.29.7", "2.30.7"])
def test_logs_written_by_the_plugin_itself_are_read(release):
    """Every 40 ms there are an all-reduce of 8 ms and a reduce-scatter of 4 ms, and from 2.30 on a message of 2 ms.

    The log is one rank's view, of 4. An all-reduce of 4 bytes is too small to be recorded.
    """
    record = inspector.read(EXAMPLES / f"written-{release}.log")
    newer = release == "2.30.7"
    expected = [("all-reduce", 6553600 * 4, 8), ("reduce-scatter", 4 * 1048576 * 4, 4), ("send", 262144 * 4, 2)][
        : 2 + newer
    ]
    assert [(call.kind, call.payload_bytes) for call in record.calls] == [each[:2] for each in expected] * 12
    for number, call in enumerate(record.calls):
        took_ms = expected[number % len(expected)][2]
        assert (call.end_ns - call.begin_ns) / 1e6 == pytest.approx(took_ms, abs=0.3)
        assert (call.group, call.rank, call.ranks, call.peer) == (
            "0x5a11c0de77",
            1,
            4,
            2 if call.kind == "send" else None,
        )
    begins_ns = [call.begin_ns for call in record.calls if call.kind == "all-reduce"]
    assert [(later - earlier) / 1e6 for earlier, later in pairwise(begins_ns)] == pytest.approx([40] * 11, abs=0.3)
    assert (record.host, record.lost) == ("n1", 1 if newer else 0)


def test_undumped_last_collectives_do_not_count_as_lost():
    """62 iterations of two collectives, dumped each second: two reduce-scatters, 25 iterations apart, are left."""
    record = inspector.read(EXAMPLES / "written-2.28.3-each-second.log")
    assert [call.kind for call in record.calls] == ["reduce-scatter"] * 2
    assert record.lost == 24


def test_without_times_it_is_said_how_to_record_them():
    with pytest.raises(RecordError, match="line 1: field event_trace_ts: found none") as refused:
        inspector.read(EXAMPLES / "written-2.30.7-not-verbose.log")
    assert "NCCL_INSPECTOR_DUMP_VERBOSE=1" in (refused.value.hint or "")


def test_an_unknown_version_is_refused_by_its_name():
    with pytest.raises(RecordError, match="line 1: field inspector_output_format_version: found 'v5.0', expected"):
        inspector.read(EXAMPLES / "v5.0-unknown.log")


def test_logs_are_recognized():
    assert all(inspector.recognizes(path.read_bytes()) for path in EXAMPLES.iterdir())
    assert not inspector.recognizes(b'{"version":1,"start_time":"","args":[]}')


@pytest.mark.parametrize("version", ["v4.3", "v4.4"])
def test_a_dump_with_fewer_lines_than_it_counts_was_cut_off(version, read):
    content = (EXAMPLES / f"{version}.log").read_bytes()
    lines = content.splitlines(keepends=True)
    assert read(b"".join(lines[:-2])).lost == 2
    with pytest.raises(RecordError, match="line 4: found a dump that lacks 2 of its lines"):
        read(b"".join([*lines[:-2], *lines]))
    with pytest.raises(RecordError, match="line 6: found a proxy_trace more than the dump counts"):
        read(content + lines[-1])
    with pytest.raises(RecordError, match="line 1: field metadata: found none"):
        read(b"".join(lines[1:]))


def test_a_last_line_that_was_cut_off_counts_as_lost(read):
    content = (EXAMPLES / "v4.0-nccl-2.30.log").read_bytes()
    cut = read(content[:-9])
    assert (len(cut.calls), cut.lost) == (2, 1)
    assert any("ends early" in loss for loss in cut.losses)


@pytest.mark.parametrize("version", inspector.VERSIONS)
def test_damaged_lines_count_as_lost_and_blank_ones_do_not(version, read):
    calls = [Call("all-reduce", "0x1", 7 + n, 0, 2, 2**20, (1 + n) * 10**9, (2 + n) * 10**9) for n in range(9)]
    lines = Inspector(version=version).log(calls).splitlines(keepends=True)
    assert read(b"\n".join(lines) + b" \n\n").lost == 0
    for damage in (b"\0\0\0\n", lines[5][:40] + b"\n", b"\xff\n", b"null\n"):
        damaged = read(b"".join([*lines[:5], damage, *lines[6:]]))
        assert (len(damaged.calls), damaged.lost) == (8, 1)
        assert "1 lines are no JSON objects and are left out, line 6 first." in damaged.losses
    if version in inspector.COUNTED:
        again = read(b"".join([*lines, b"?\n", *lines[1:3]]))
        assert (len(again.calls), again.lost) == (9, 3)


def test_dropped_calls_of_a_gap_are_lost_and_the_rest_were_small(read):
    """Dumps count what was dropped since v4.1; before that all of a gap may have been."""
    call = Call("all-reduce", "0x1", 7, 0, 2, 2**20, 10**9, 2 * 10**9)
    later = Call("all-reduce", "0x1", 17, 0, 2, 2**20, 3 * 10**9, 4 * 10**9)
    known = read(Inspector(version="v4.2", dropped=4).log([call, later]))
    assert known.lost == 4
    assert any(note.startswith("5 were not recorded, small ones above all") for note in known.notes)
    assert read(Inspector(version="v4.2", dropped=12).log([call, later])).lost == 12
    assert read(Inspector(version="v4.0").log([call, later])).lost == 9


def test_calls_without_known_size_or_times_are_left_out(read):
    strange = read(edited("v4.2", 1, coll_perf__coll="AllGatherV"))
    assert (len(strange.calls), strange.lost) == (2, 1)
    assert any("1 'AllGatherV'" in loss for loss in strange.losses)
    untimed = read(edited("v4.2", 1, coll_perf__event_trace_ts__kernel_events=[]))
    assert (len(untimed.calls), untimed.lost) == (2, 1)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"coll_perf__coll_sn": -1}, "field coll_sn: found -1, expected a whole number from 0 to 2^53"),
        ({"coll_perf__coll_sn": True}, "field coll_sn: found True"),
        ({"coll_perf__coll": None}, "field coll: found none, expected text"),
        ({"coll_perf__coll_msg_size_bytes": 2**51}, "field coll_msg_size_bytes: found more than 2^53 bytes"),
        ({"header__rank": "4"}, "field rank: found '4'"),
        ({"header__rank": 8}, "found rank 8 and peer none, expected less than n_ranks, 8"),
        ({"header": []}, "field header: found a list, expected an object"),
        ({"metadata__pid": 7}, "found lines of another process"),
        ({"coll_perf__event_trace_ts__kernel_events": [3]}, "field kernel_events: found 3, expected objects"),
    ],
)
def test_a_wrong_field_is_named_with_its_line(fields, said, read):
    with pytest.raises(RecordError) as refused:
        read(edited("v4.2", 2, **fields))
    assert f"line 3: {said}" in refused.value.message


def test_a_log_of_nothing_is_refused(read):
    with pytest.raises(RecordError, match="found no collective with times in 0 lines") as refused:
        read(b"")
    assert refused.value.hint is None


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        ({"coll_perf__coll": "AlltoAll"}, "record with PyTorch Kineto"),
        ({"coll_perf__coll": "AllGatherV"}, "record with PyTorch Kineto"),
        ({"coll_perf__coll_sn": 1900}, "record again with a larger NCCL_INSPECTOR_DUMP_COLL_RING_SIZE"),
        ({"coll_perf__event_trace_ts__kernel_events": []}, None),
    ],
)
def test_a_hint_depends_on_the_calls_that_are_lost(change, hint, read):
    record = read(edited("v4.0-nccl-2.30", 0, **change))
    assert record.lost > 0
    assert record.hint is None if hint is None else (record.hint or "").startswith(hint)


def test_algorithms_other_than_rings_and_trees_are_named(read):
    call = Call("all-reduce", "0x1", 7, 0, 2, 2**20, 10**9, 2 * 10**9)
    log = Inspector(version="v4.2").log([call, replace(call, number=8)]).replace(b'"RING"', b'"NVLS"', 1)
    notes = read(log).notes
    assert "All-reduces of other algorithms than rings and trees are taken for rings: 1 'NVLS'." in notes


def test_a_call_during_which_the_clock_was_set_back_has_no_time(read):
    calls = [Call("all-reduce", "0x1", n, 0, 2, 2**20, (9 + n) * 10**9, (9 + n) * 10**9 + 1000) for n in range(3)]
    lines = Inspector(version="v4.2").log(calls).splitlines(keepends=True)
    back = lines[2].replace(b'"kernel_stop_ts":100', b'"kernel_stop_ts":99')
    record = read(b"".join([*lines[:2], back, *lines[3:]]))
    assert (len(record.calls), record.lost) == (2, 1)
    assert "1 have no kernel's times, or end before they begin, and are left out." in record.losses


def test_a_log_of_which_no_line_is_whole_says_why(read):
    whole = edited("v4.2", 2).splitlines()
    indented = b"".join(json.dumps(json.loads(line), indent=1).encode() + b"\n" for line in whole)
    with pytest.raises(RecordError, match=r"in (\d+) lines \(\1 lines are no JSON objects and are left out, line 1"):
        read(indented)


@st.composite
def jobs(draw) -> list[Call]:
    """Calls of one process in some communicators, in order of time; numbers of a kind follow each other."""
    calls: list[Call] = []
    counted: dict[tuple, int] = {}
    members = draw(st.lists(st.tuples(st.integers(1, 2**56), st.integers(2, 64)), min_size=1, max_size=3, unique=True))
    begin_us = draw(st.integers(1, 2**50))
    for _ in range(draw(st.integers(1, 30))):
        identity, ranks = draw(st.sampled_from(members))
        kind = draw(st.sampled_from([*COLLECTIVES, *MESSAGES]))
        group, rank = hex(identity), identity % ranks
        number = counted.setdefault((group, ranks, kind), draw(st.integers(0, 9))) if kind in COLLECTIVES else None
        counted[group, ranks, kind] = (number or 0) + 1
        part = draw(st.integers(1, 2**40))
        took_us = draw(st.integers(0, 10**6))
        calls.append(
            Call(
                kind=kind,
                group=f"{group}-{ranks}",
                number=number,
                rank=rank,
                ranks=ranks,
                payload_bytes=part * (ranks if kind in ("all-gather", "reduce-scatter") else 1),
                begin_ns=begin_us * 1000,
                end_ns=(begin_us + took_us) * 1000,
                peer=(rank + 1) % ranks if kind in MESSAGES else None,
                is_tree=kind == "all-reduce" and draw(st.booleans()),
            )
        )
        begin_us += draw(st.integers(1, 10**6))
    return calls


@given(calls=jobs(), version=st.sampled_from(inspector.VERSIONS), named=st.booleans())
def test_a_written_inspector_log_is_read_back(calls, version, named, tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "n1-pid42.log"
    path.write_bytes(Inspector(version=version, named=named).log(calls))
    record = inspector.read(path)
    names_algorithms = version >= "v4.2"
    assert list(record.calls) == [
        replace(call, is_tree=names_algorithms and call.is_tree, hosts=call.ranks) for call in calls
    ]
    assert record.lost == 0
    assert record.host == "n1"


@given(calls=jobs(), data=st.data())
def test_a_gap_between_calls_counts_as_lost(calls, data, tmp_path_factory):
    """Of the collectives of one kind in one communicator, all but the first and the last may be found missing."""
    sort = data.draw(
        st.sampled_from([(member_of(call), call.kind) for call in calls if call.number is not None] or [None])
    )
    alike = [call for call in calls if sort == (member_of(call), call.kind)]
    gone = data.draw(st.sets(st.sampled_from(alike[1:-1]))) if len(alike) > 2 else set()
    path = tmp_path_factory.mktemp("log") / "n1-pid42.log"
    path.write_bytes(Inspector().log([call for call in calls if call not in gone]))
    assert inspector.read(path).lost == len(gone)
