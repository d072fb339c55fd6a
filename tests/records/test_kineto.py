# SPDX-License-Identifier: Apache-2.0
"""Traces of PyTorch's profiler: what is counted of them, and what is refused."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from analysis.records.call import RecordError
from analysis.records.formats import format_of
from analysis.records.kineto import read

GROUPS = [{"pg_name": "0", "ranks": [0, 1]}]


def kernel(ts: float, **args: Any) -> dict[str, Any]:
    told = {
        "Collective name": "allreduce",
        "dtype": "Float",
        "In msg nelems": 1000,
        "Out msg nelems": 1000,
        "Group size": 2,
        "Process Group Name": "0",
        "Process Group Ranks": "[0, 1]",
        "Seq": 7,
    }
    name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    return {"ph": "X", "cat": "kernel", "name": name, "ts": ts, "dur": 2.5, "args": told | args}


def gloo(ts: float, name: str = "all_reduce", dims: Any = ([1000],)) -> dict[str, Any]:
    args = {"Input Dims": list(dims), "Input type": ["float"]}
    return {"ph": "X", "cat": "user_annotation", "name": f"gloo:{name}", "ts": ts, "dur": 4, "args": args}


def written(folder: Path, *events: dict[str, Any], **more: Any) -> Path:
    path = folder / "trace.json"
    told = {"distributedInfo": {"backend": "nccl", "rank": 1, "world_size": 2}, "baseTimeNanoseconds": 10**18}
    path.write_text(json.dumps({"schemaVersion": 1, **told, **more, "traceEvents": list(events)}))
    return path


def test_a_kernel_is_a_call(tmp_path):
    record = read(written(tmp_path, kernel(4750011393637.452)))
    (call,) = record.calls
    assert (record.rank, record.world, record.members) == (1, 2, {"0": (0, 1)})
    assert (call.kind, call.number, call.rank, call.ranks, call.payload_bytes) == ("all-reduce", 7, 1, 2, 4000)
    assert (call.begin_ns, call.end_ns) == (10**18 + 4750011393637452, 10**18 + 4750011393639952)


def test_of_a_call_one_trace_is_counted(tmp_path):
    asked = {**kernel(1), "cat": "cpu_op", "name": "record_param_comms"}
    named = [{**asked, "name": name} for name in ("c10d::allreduce_", "nccl:all_reduce")]
    assert len(read(written(tmp_path, asked, *named, kernel(2), gloo(1))).calls) == 1


@pytest.mark.parametrize(
    ("name", "given", "taken", "kind", "payload"),
    [
        ("_allgather_base", 500, 1000, "all-gather", 4000),
        ("allgather", 500, 500, "all-gather", 4000),
        ("_reduce_scatter_base", 1000, 500, "reduce-scatter", 4000),
        ("reduce_scatter_tensor_coalesced", 1000, 500, "reduce-scatter", 4000),
        ("all_to_allv", 1000, 1000, "all-to-all", 4000),
        ("send", 1000, 1000, "send", 4000),
        ("recv", 0, 1000, "receive", 4000),
    ],
)
def test_what_a_collective_is_about(  # noqa: PLR0917 - one a column
    tmp_path, name, given, taken, kind, payload
):
    told = {"Collective name": name, "In msg nelems": given, "Out msg nelems": taken, "Dst Rank": 0, "Src Rank": 0}
    (call,) = read(written(tmp_path, kernel(1, **told))).calls
    assert (call.kind, call.payload_bytes) == (kind, payload)
    assert call.peer == (0 if kind in ("send", "receive") else None)


def test_ranks_cut_short_go_on_in_even_steps(tmp_path):
    cut = "[1, 5, 9, ...]"
    record = read(written(tmp_path, kernel(1, **{"Group size": 40, "Process Group Ranks": cut})))
    assert record.members["0"] == tuple(range(1, 161, 4))
    uneven = kernel(1, **{"Group size": 40, "Process Group Ranks": "[1, 2, 9, ...]", "Process Group Name": "1"})
    record = read(written(tmp_path, kernel(1), uneven))
    assert (len(record.calls), record.lost) == (1, 1)


def test_kernels_without_arguments_are_named_and_count_as_lost(tmp_path):
    bare = {**kernel(1), "name": "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "args": {"stream": 7}}
    record = read(written(tmp_path, kernel(1), bare, bare))
    assert record.lost == 2
    assert record.notes == (
        "calls that do not say how many bytes they moved, or for whom, are left out: 2 ncclDevKernel_SendRecv",
    )


def test_gloo_is_counted_where_there_are_no_kernels(tmp_path):
    info = {"backend": "gloo", "rank": 0, "world_size": 2, "pg_config": GROUPS}
    events = (gloo(2), gloo(9, "all_gather"), gloo(20, "barrier", ()), gloo(30, "send"))
    record = read(written(tmp_path, *events, distributedInfo=info))
    assert [(call.kind, call.number, call.payload_bytes) for call in record.calls] == [
        ("all-reduce", None, 4000),
        ("all-gather", None, 8000),
    ]
    assert record.notes == ("1 messages over gloo are left out: their events end when they are posted, not sent",)


def test_gloo_in_several_groups_is_refused(tmp_path):
    groups = [*GROUPS, {"pg_name": "1", "ranks": [0, 1]}]
    info = {"backend": "gloo", "rank": 0, "world_size": 2, "pg_config": groups}
    with pytest.raises(RecordError, match="process groups 0, 1: its events do not say of which group"):
        read(written(tmp_path, gloo(1), distributedInfo=info))


def test_steps_are_iterations(tmp_path):
    steps = [{"ph": "X", "name": f"ProfilerStep#{number}", "ts": 10 * number, "dur": 10} for number in (2, 1)]
    record = read(written(tmp_path, kernel(1), *steps))
    assert record.steps_ns == ((10**18 + 10_000, 10**18 + 20_000), (10**18 + 20_000, 10**18 + 30_000))


def test_gzipped_it_is_the_same(tmp_path):
    path = written(tmp_path, kernel(1))
    packed = tmp_path / "named-otherwise.txt"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert format_of(packed).NAME == "PyTorch Kineto's trace"
    assert read(packed).calls == read(path).calls


def test_whose_trace_it_is_must_be_told(tmp_path):
    with pytest.raises(RecordError, match="does not say whose it is") as error:
        read(written(tmp_path, kernel(1), distributedInfo=None))
    assert error.value.hint == "begin profiling after torch.distributed.init_process_group"


def test_a_trace_without_collectives_says_how_to_record_them(tmp_path):
    asked = {**kernel(1), "cat": "cpu_op", "name": "record_param_comms"}
    with pytest.raises(RecordError, match="found no call of a collective that says its bytes") as error:
        read(written(tmp_path, asked))
    assert "ProfilerActivity.CUDA" in str(error.value.hint)


@pytest.mark.parametrize("content", ['{"traceEvents": [', '{"traceEvents": 5}', '{"deviceProperties": []}'])
def test_what_is_no_trace_is_refused(tmp_path, content):
    path = tmp_path / "cut.json"
    path.write_text(content)
    assert format_of(path).NAME == "PyTorch Kineto's trace"
    with pytest.raises(RecordError, match=r"cut.json: found no (JSON|list traceEvents)"):
        read(path)


def test_a_file_of_no_format_is_refused(tmp_path):
    path = tmp_path / "notes"
    path.write_text("Dear diary")
    expected = "begins with 'Dear diary', expected one of: PyTorch Kineto's trace, .*nccl-tests' JSON"
    with pytest.raises(RecordError, match=expected):
        format_of(path)
