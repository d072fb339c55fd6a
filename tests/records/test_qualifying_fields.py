# SPDX-License-Identifier: Apache-2.0
"""Each field that qualifies a figure of a record: with another value, the figures differ, or a sentence says so."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from analysis.records import profile_maker
from analysis.records.call import Call, Record, RecordError
from analysis.records.job import join_records
from analysis.records.readers import chakra, inspector, kineto, nccl_tests
from tests.records.record_writers import COMM_TYPES, Inspector

pytestmark = pytest.mark.unit

MS = 1_000_000
DOCUMENT = (Path(__file__).parents[2] / "docs/reference/record-formats.md").read_text()
FABRIC = Path(__file__).parent / "examples" / "nccl-tests" / "version-3.json"
Change = Callable[[Any], object]
Outcome = tuple[Any, ...]


def outcome_of(read: Callable[[Path], Record], *paths: Path) -> Outcome:
    """Return all figures and sentences of a job, or the message that refuses it."""
    try:
        job = join_records([replace(read(path), path=Path(path.name)) for path in paths])
    except RecordError as error:
        return (error.message, error.hint)
    return (
        job.exchanges,
        job.notes,
        job.lost_share,
        [(each.losses, each.notes, each.steps_ns) for each in job.records],
    )


def documented(format_name: str, field: str) -> bool:
    """Return True if the table of qualifying fields has the field in the format's row."""
    section = DOCUMENT.split("## Qualifying fields", 1)[1].split("\n## ")[0]
    return any(row.startswith(f"| {format_name} |") and f"`{field}`" in row for row in section.splitlines())


def kineto_trace(rank: int) -> dict[str, Any]:
    events = []
    for number in range(1, 41):
        at_us = 100_000.0 * number
        events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number}", "ts": at_us, "dur": 1e5})
        calls = [
            ("allreduce", "AllReduce_Sum_f32_RING_LL", {}),
            ("all_to_allv", "SendRecv", {"In split size": "[1, 3]"}),
        ]
        calls += [("broadcast", "Broadcast_RING_LL", {"Root Rank": 0})]
        calls += [("send" if rank == 0 else "recv", "SendRecv", {"Dst Rank": 1, "Src Rank": 0})]
        for place, (name, kernel, more) in enumerate(calls):
            args = {
                "Collective name": name,
                "dtype": "Float",
                "In msg nelems": 1000,
                "Out msg nelems": 1000,
                "Group size": 2,
                "Process Group Name": "0",
                "Process Group Ranks": "[0, 1]",
                "Seq": number,
            }
            event = {"ph": "X", "cat": "kernel", "name": f"ncclDevKernel_{kernel}(x)", "ts": at_us + 9000 * place}
            events.append({**event, "dur": 8000.0, "args": args | more})
    info = {"rank": rank, "world_size": 2, "pg_config": [{"pg_name": "0", "pg_size": 2, "ranks": [0, 1]}]}
    header = {"schemaVersion": 1, "distributedInfo": info, "baseTimeNanoseconds": 10**18, "host_name": f"n{rank}"}
    return {**header, "traceEvents": events}


def argument(collective: str, name: str, value: Any) -> Change:
    """Change an argument of all kernels of a collective."""

    def change(trace: Any) -> None:
        for event in trace["traceEvents"]:
            if event.get("args", {}).get("Collective name") == collective:
                event["args"][name] = value

    return change


def in_rank_0(change: Change) -> Change:
    return lambda trace: change(trace) if trace["distributedInfo"]["rank"] == 0 else None


def of_event(place: int, name: str, value: Any) -> Change:
    return lambda trace: trace["traceEvents"][place].update({name: value})


KINETO: list[tuple[str, Change]] = [
    ("Collective name", argument("broadcast", "Collective name", "reduce")),
    ("dtype", argument("allreduce", "dtype", "Half")),
    ("In msg nelems", argument("all_to_allv", "In msg nelems", 2000)),
    ("Out msg nelems", argument("allreduce", "Out msg nelems", 2000)),
    ("Group size", argument("allreduce", "Group size", 1)),
    ("In split size", argument("all_to_allv", "In split size", "[0, 4]")),
    ("In split size", argument("all_to_allv", "In split size", "[250, 250]")),
    ("In split size", argument("all_to_allv", "In split size", "[1, 3, ...]")),
    ("In split size", argument("all_to_allv", "In split size", None)),
    ("Process Group Name", in_rank_0(argument("allreduce", "Process Group Name", "1"))),
    ("Process Group Ranks", argument("allreduce", "Process Group Ranks", "[1, 0]")),
    ("Seq", in_rank_0(argument("allreduce", "Seq", 7))),
    ("Root Rank", argument("broadcast", "Root Rank", 1)),
    ("Dst Rank", argument("send", "Dst Rank", 0)),
    ("Src Rank", argument("recv", "Src Rank", 1)),
    ("host_name", lambda trace: trace.update(host_name="n0")),
    ("host_name", lambda trace: trace.pop("host_name")),
    ("schemaVersion", lambda trace: trace.update(schemaVersion=2)),
    ("baseTimeNanoseconds", lambda trace: trace.update(baseTimeNanoseconds=10**18 + 10**9)),
    ("rank", lambda trace: trace["distributedInfo"].update(rank=5)),
    ("world_size", lambda trace: trace["distributedInfo"].update(world_size=4)),
    ("pg_config", lambda trace: trace["distributedInfo"].update(pg_config=[{"pg_name": "0", "ranks": [1, 0]}])),
    ("ph", of_event(1, "ph", "B")),
    ("name", of_event(1, "name", "ncclDevKernel_AllReduce_Sum_f32_TREE_LL(x)")),
    ("name", of_event(0, "name", "ProfilerStep#900")),
    ("ts", of_event(1, "ts", 100_500.0)),
    ("dur", of_event(1, "dur", 0)),
]


@pytest.mark.parametrize(
    ("field", "value", "payload_bytes"),
    [("Input Dims", [[500]], 2000), ("Input type", ["double"], 8000), ("Input Dims", [[10, 10]], 400)],
)
def test_a_field_of_gloo_changes_the_bytes(field, value, payload_bytes, tmp_path):
    args = {"Input Dims": [[1000]], "Input type": ["float"]}
    event = {"ph": "X", "cat": "user_annotation", "name": "gloo:all_reduce", "ts": 1, "dur": 4}
    path = tmp_path / "r0.json"
    info = {"distributedInfo": {"rank": 0, "world_size": 2}}
    path.write_text(json.dumps({**info, "traceEvents": [{**event, "args": args | {field: value}}]}))
    assert kineto.read(path).calls[0].payload_bytes == payload_bytes
    assert documented("PyTorch Kineto", field)


def inspector_lines(rank: int) -> list[Any]:
    calls = []
    for number in range(40):
        begin_ns = 10**18 + 100 * number * MS
        calls.append(Call("all-reduce", "0x5a", number, rank, 2, 40_000, begin_ns, begin_ns + 10 * MS))
        kind = "send" if rank == 0 else "receive"
        calls.append(Call(kind, "0x5a", None, rank, 2, 9_000, begin_ns + 20 * MS, begin_ns + 30 * MS, peer=1 - rank))
    log = Inspector(version="v4.2", host=f"n{rank}").log(calls)
    return [json.loads(line) for line in log.splitlines()]


def in_lines(*way: str | int, value: Any) -> Change:
    """Change a field of all lines that have it."""

    def change(lines: Any) -> None:
        for line in lines:
            inner = line
            for step in way[:-1]:
                inner = inner[step] if isinstance(step, int) else inner.get(step, {})
                if not inner:
                    break
            else:
                inner[way[-1]] = value

    return change


def of_kernels(**times: int) -> Change:
    return lambda lines: [each.update(times) for each in lines[1]["coll_perf"]["event_trace_ts"]["kernel_events"]]


INSPECTOR: list[tuple[str, Change]] = [
    ("inspector_output_format_version", in_lines("metadata", "inspector_output_format_version", value="v5.0")),
    ("hostname", lambda lines: [line["metadata"].update(hostname="n0") for line in lines if "p2p_perf" in line]),
    ("pid", lambda lines: lines[1]["metadata"].update(pid=7)),
    ("id", lambda lines: lines[1]["header"].update(id=lines[1]["metadata"]["hostname"])),
    ("rank", in_lines("header", "rank", value=1)),
    ("n_ranks", in_lines("header", "n_ranks", value=3)),
    ("nnodes", in_lines("header", "nnodes", value=1)),
    ("coll", in_lines("coll_perf", "coll", value="Broadcast")),
    ("coll", in_lines("coll_perf", "coll", value="AlltoAll")),
    ("coll_sn", lambda lines: lines[1]["coll_perf"].update(coll_sn=77)),
    ("coll_msg_size_bytes", in_lines("coll_perf", "coll_msg_size_bytes", value=50_000)),
    ("coll_algo", in_lines("coll_perf", "coll_algo", value="TREE")),
    ("coll_algo", in_lines("coll_perf", "coll_algo", value="NVLS")),
    ("coll_algo", in_lines("coll_perf", "coll_algo", value="COLLNET_DIRECT")),
    ("p2p", in_lines("p2p_perf", "p2p", value="Recv")),
    ("p2p_peer", in_lines("p2p_perf", "p2p_peer", value=0)),
    ("p2p_msg_size_bytes", in_lines("p2p_perf", "p2p_msg_size_bytes", value=10_000)),
    ("coll_dropped_total", in_lines("dump_stats", "coll_dropped_total", value=1)),
    ("p2p_dropped_total", in_lines("dump_stats", "p2p_dropped_total", value=1)),
    ("kernel_start_ts", of_kernels(kernel_start_ts=10**15 - 1000)),
    ("kernel_stop_ts", of_kernels(kernel_stop_ts=0)),
]


def chakra_nodes(rank: int) -> list[Any]:
    listing = [{"pg_name": "0", "ranks": [0, 1], "group_size": 2}]
    found: list[Any] = [
        {"attr": [{"name": "schema", "stringVal": chakra.SCHEMAS[0]}]},
        {"id": "1", "name": "## process_group:init ##", "inputs": {"values": str([json.dumps(listing)])}},
    ]
    for number in range(40):
        at_us = 10**15 + 100_000 * number
        common = {"id": str(number), "name": "ncclDevKernel", "durationMicros": "10000"}
        sized = [{"name": "comm_size", "int64Val": "40000"}, {"name": "pg_name", "stringVal": "0"}]
        kind = {"name": "comm_type", "int64Val": str(COMM_TYPES["all-reduce"])}
        peer = {"name": "comm_dst" if rank == 0 else "comm_src", "int32Val": 1 - rank}
        message = "COMM_SEND_NODE" if rank == 0 else "COMM_RECV_NODE"
        found.append({**common, "type": "COMM_COLL_NODE", "startTimeMicros": str(at_us), "attr": [*sized, kind]})
        found.append({**common, "type": message, "startTimeMicros": str(at_us + 20_000), "attr": [*sized, peer]})
    return found


def attribute(name: str, value: str) -> Change:
    def change(nodes: Any) -> None:
        for each in (each for node in nodes for each in node.get("attr", []) if each["name"] == name):
            each.update({next(key for key in each if key != "name"): value})

    return change


CHAKRA: list[tuple[str, Change]] = [
    ("schema", attribute("schema", "9.9")),
    ("comm_type", attribute("comm_type", str(COMM_TYPES["all-to-all"]))),
    ("comm_size", attribute("comm_size", "50000")),
    ("pg_name", attribute("pg_name", "7")),
    ("comm_dst", attribute("comm_dst", "0")),
    ("comm_src", attribute("comm_src", "1")),
    ("type", lambda nodes: nodes[2].update(type="COMP_NODE")),
    ("start_time_micros", lambda nodes: nodes[2].update(startTimeMicros="0")),
    ("duration_micros", lambda nodes: nodes[2].update(durationMicros="20000")),
    ("ranks", lambda nodes: nodes[1].update(inputs={"values": '[{"pg_name": "0", "ranks": [1, 0]}]'})),
    (
        "group_size",
        lambda nodes: nodes[1].update(inputs={"values": '[{"pg_name": "0", "ranks": [], "group_size": 3}]'}),
    ),
]


class Job(NamedTuple):
    """A job of two ranks in a format, and changes of its records."""

    reader: ModuleType
    file: str
    record: Callable[[int], Any]
    dump: Callable[[Any], str]
    exchanges: int
    changes: list[tuple[str, Change]]


JOBS = {
    "PyTorch Kineto": Job(kineto, "r{}.json", kineto_trace, json.dumps, 160, KINETO),
    "NCCL Inspector": Job(
        inspector, "n{}.log", inspector_lines, lambda lines: "\n".join(map(json.dumps, lines)) + "\n", 80, INSPECTOR
    ),
    "Chakra": Job(chakra, "job.{}.json", chakra_nodes, lambda nodes: "".join(map(json.dumps, nodes)), 80, CHAKRA),
}


@pytest.mark.parametrize(
    ("name", "field", "change"), [(name, field, change) for name, job in JOBS.items() for field, change in job.changes]
)
def test_a_field_of_a_record_changes_a_figure_or_is_named(name, field, change, tmp_path):
    job = JOBS[name]
    records = {tmp_path / job.file.format(rank): job.record(rank) for rank in (0, 1)}
    outcomes = []
    for edit in (lambda _: None, change):
        for path, record in records.items():
            edit(record)
            path.write_text(job.dump(record))
        outcomes.append(outcome_of(job.reader.read, *records))
    assert outcomes[0] != outcomes[1]
    assert len(outcomes[0][0]) == job.exchanges
    assert documented(name, field)


def of_row(name: str, value: Any) -> Change:
    return lambda entry: entry["results"][0].update({name: value})


def of_config(name: str, value: Any) -> Change:
    return lambda entry: entry["config"].update({name: value})


def with_another_process(**fields: Any) -> Change:
    return lambda entry: entry["config"]["devices"].append(entry["config"]["devices"][0] | fields)


NCCL_TESTS: list[tuple[str, Change]] = [
    ("version", lambda entry: entry.update(version=9)),
    ("args", lambda entry: entry["args"].__setitem__(0, "all_gather_perf")),
    ("nccl_version", lambda entry: entry.update(nccl_version=22803)),
    ("size", of_row("size", 1)),
    ("type", of_row("type", "half")),
    ("type", of_row("type", "bfloat16")),
    ("redop", of_row("redop", "max")),
    ("redop", of_row("redop", "none")),
    ("root", of_row("root", "      3")),
    ("time", lambda entry: entry["results"][0]["in_place"].update(time=1.0)),
    ("alg_bw", lambda entry: entry["results"][0]["in_place"].update(alg_bw=1.0)),
    ("bus_bw", lambda entry: entry["results"][0]["in_place"].update(bus_bw=99.0)),
    ("nwrong", lambda entry: entry["results"][0]["in_place"].update(nwrong=None)),
    ("group", with_another_process(group=1)),
    ("group", with_another_process(group=0)),
    ("hostname", with_another_process(group=0, hostname="n2")),
    ("nthreads", of_config("nthreads", 2)),
    ("ngpus", of_config("ngpus", 8)),
    ("aggregated_iterations", of_config("aggregated_iterations", 4)),
    ("graph", of_config("graph", 5)),
    ("blocking_collectives", of_config("blocking_collectives", "true")),
    ("okay", lambda entry: entry["out_of_bounds"].update(okay="false")),
]


@pytest.mark.parametrize(("field", "change"), NCCL_TESTS, ids=[field for field, _ in NCCL_TESTS])
def test_a_field_of_nccl_tests_changes_what_is_shown(field, change, tmp_path, capsys):
    from rich.console import Console  # noqa: PLC0415 - of this test alone

    path = tmp_path / "out.json"
    shown = []
    for edit in (lambda _: None, change):
        entry = json.loads(FABRIC.read_text())
        edit(entry)
        path.write_text(json.dumps(entry))
        try:
            fabric = nccl_tests.read(path)
            profile_maker.show_fabric(fabric, Console(width=200))
            shown.append((capsys.readouterr().out, fabric.nccl))
        except RecordError as error:
            shown.append((error.message, None))
    assert shown[0] != shown[1]
    assert documented("nccl-tests", field)
