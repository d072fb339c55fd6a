# SPDX-License-Identifier: Apache-2.0
"""Traces of PyTorch's profiler: what is counted of them, and what is refused."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from analysis.records.call import RecordError
from analysis.records.formats import format_of
from analysis.records.readers.kineto import read

pytestmark = pytest.mark.unit

GROUPS = [{"pg_name": "0", "ranks": [0, 1]}]


def kernel(ts: float, **args: Any) -> dict[str, Any]:
    recorded = {
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
    return {"ph": "X", "cat": "kernel", "name": name, "ts": ts, "dur": 2.5, "args": recorded | args}


def gloo(ts: float, name: str = "all_reduce", dims: Any = ([1000],)) -> dict[str, Any]:
    args = {"Input Dims": list(dims), "Input type": ["float"]}
    return {"ph": "X", "cat": "user_annotation", "name": f"gloo:{name}", "ts": ts, "dur": 4, "args": args}


def written(folder: Path, *events: dict[str, Any], **more: Any) -> Path:
    path = folder / "trace.json"
    recorded = {"distributedInfo": {"backend": "nccl", "rank": 1, "world_size": 2}, "baseTimeNanoseconds": 10**18}
    path.write_text(json.dumps({"schemaVersion": 1, **recorded, **more, "traceEvents": list(events)}))
    return path


def test_a_kernel_is_a_call(tmp_path):
    record = read(written(tmp_path, kernel(4750011393637.452)))
    (call,) = record.calls
    assert (record.rank, record.world, record.members) == (1, 2, {"0": (0, 1)})
    assert (call.kind, call.number, call.rank, call.ranks, call.payload_bytes) == ("all-reduce", 7, 1, 2, 4000)
    assert (call.begin_ns, call.end_ns) == (10**18 + 4750011393637452, 10**18 + 4750011393639952)


@pytest.mark.parametrize(
    ("name", "is_tree"),
    [
        ("ncclDevKernel_AllReduce_Sum_f32_TREE_LL(ncclDevKernelArgsStorage<4096ul>)", True),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", False),
        ("ncclDevKernel_AllReduce_Sum_f32_NVLS_TREE_SIMPLE(ncclDevKernelArgsStorage<4096ul>)", False),
        ("ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)", False),
        (None, False),
    ],
)
def test_an_all_reduce_along_trees_is_recognized_by_its_kernel(tmp_path, name, is_tree):
    (call,) = read(written(tmp_path, {**kernel(1), "name": name})).calls
    assert call.is_tree is is_tree


def test_a_call_traced_on_cpu_and_gpu_counts_once(tmp_path):
    request = {**kernel(1), "cat": "cpu_op", "name": "record_param_comms"}
    named = [{**request, "name": name} for name in ("c10d::allreduce_", "nccl:all_reduce")]
    assert len(read(written(tmp_path, request, *named, kernel(2), gloo(1))).calls) == 1


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
def test_kind_and_payload_of_a_kineto_collective_are_read(  # noqa: PLR0917 - one a column
    tmp_path, name, given, taken, kind, payload
):
    recorded = {"Collective name": name, "In msg nelems": given, "Out msg nelems": taken, "Dst Rank": 0, "Src Rank": 0}
    (call,) = read(written(tmp_path, kernel(1, **recorded))).calls
    assert (call.kind, call.payload_bytes) == (kind, payload)
    assert call.peer == (0 if kind in ("send", "receive") else None)


def test_ranks_cut_short_go_on_in_even_steps(tmp_path):
    cut = "[1, 5, 9, ...]"
    info = {"backend": "nccl", "rank": 1, "world_size": 200}
    record = read(written(tmp_path, kernel(1, **{"Group size": 40, "Process Group Ranks": cut}), distributedInfo=info))
    assert record.members["0"] == tuple(range(1, 161, 4))
    uneven = kernel(1, **{"Group size": 40, "Process Group Ranks": "[1, 2, 9, ...]", "Process Group Name": "1"})
    record = read(written(tmp_path, kernel(1), uneven, distributedInfo=info))
    assert (len(record.calls), record.lost) == (1, 1)


def test_kernels_without_arguments_are_named_and_count_as_lost(tmp_path):
    bare = {**kernel(1), "name": "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "args": {"stream": 7}}
    record = read(written(tmp_path, kernel(1), bare, bare))
    assert record.lost == 2
    assert record.losses == (
        "calls that cannot be read are left out: 2 ncclDevKernel_SendRecv (field Collective name: found none, "
        "expected text)",
    )


@pytest.mark.parametrize(
    "name",
    [
        "ncclSymkDevKernel_AllReduce_RSxLD_AGxST_sum_bf16(ncclSymkDevWorkArgs4K)",
        "ncclSymDevKernel_AllReduce_AGxLL_R_sum_f32(ncclSymDevArgs)",
        "mscclKernel_Sum_half_Simple_false(ncclDevComm*)",
        "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)",
        "ncclAllReduceRingLLKernel_sum_f32(ncclColl)",
        "void mscclpp::allreduce6<float>(float*)",
        "a kernel of another library, whose arguments say what it is",
        None,
    ],
)
def test_every_kernel_that_is_called_a_collective_is_counted(tmp_path, name):
    record = read(written(tmp_path, kernel(1), {**kernel(9, Seq=8), "name": name}))
    assert (len(record.calls), record.lost) == (2, 0)
    if name and "ccl" in name:
        record = read(written(tmp_path, kernel(1), {**kernel(9), "name": name, "args": None}))
        assert (len(record.calls), record.lost) == (1, 1)
        assert name.split("(")[0] in record.losses[0]


@pytest.mark.parametrize(
    ("recorded", "sent"),
    [
        ({}, None),
        ({"In split size": "[]"}, None),
        ({"In split size": [600, 400]}, 2400),
        ({"In split size": "[600, 400]"}, 2400),
        ({"In split size": "[3, 2]"}, 2400),  # rows of 200 numbers each, as all_to_all_single has them
        ({"In split size": "[0, 1000]"}, 0),
        ({"In split size": "[0, 0]", "In msg nelems": 0}, 0),
        ({"In split size": "[600, 400, ...]"}, None),
    ],
    ids=str,
)
def test_an_all_to_all_sends_its_split_sizes_without_its_own(tmp_path, recorded, sent):
    args = {"Collective name": "all_to_allv", **recorded}
    record = read(written(tmp_path, kernel(1, **args)))
    assert [call.sent_bytes for call in record.calls] == [sent]
    cut = "1 all-to-alls with split sizes that were cut short are taken for even"
    assert (cut in record.notes) == ("..." in str(recorded))


@pytest.mark.parametrize("sizes", ["[600, 500]", "[1000]", "[0, 0]", "[600, -400]", "[600, x]", 7, {}], ids=str)
def test_split_sizes_that_contradict_the_input_count_as_lost(tmp_path, sizes):
    args = {"Collective name": "all_to_allv", "In split size": sizes}
    record = read(written(tmp_path, kernel(1), kernel(2, **args)))
    assert (len(record.calls), record.lost) == (1, 1)
    assert "field In split size: found" in record.losses[0]


@pytest.mark.parametrize(
    "name",
    [
        "void deep_ep::internode::dispatch<false, 8, false, 2>(int4*, float*)",
        "deep_ep::internode_ll::combine<true, 7168, 9>(void*, void*)",
        "nvshmemi_transfer_rma_nbi_kernel(int)",
        "void nvshmem::collectives::alltoall_on_stream(void*)",
        "rocshmem_put_kernel(void*)",
    ],
)
def test_kernels_of_libraries_that_are_not_decoded_count_as_lost(tmp_path, name):
    record = read(written(tmp_path, kernel(1), {**kernel(9), "name": name, "args": {"stream": 7}}))
    assert (len(record.calls), record.lost) == (1, 1)
    assert name.split("(")[0] in record.losses[0]


@pytest.mark.parametrize(
    "name",
    [
        "void deep_ep::intranode::combine<__nv_bfloat16, 8, 768>(int4*)",
        "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)",
        "two_shot_all_reduce_kernel_inplace(float**)",
        "void tensorrt_llm::kernels::moeA2ADispatchKernel(int)",
        "multimem_reduce_scatter_kernel(void*)",
    ],
)
def test_kernels_that_look_like_communication_are_counted_and_named(tmp_path, name):
    other = {**kernel(9), "name": name, "args": {"stream": 7}}
    record = read(written(tmp_path, kernel(1), other, other))
    assert (len(record.calls), record.lost) == (1, 0)
    assert record.notes == (
        f"kernels that look like communication, and do not say their bytes, count as computing: 2 {name.split('(')[0]}",
    )


@pytest.mark.parametrize(
    "name", ["void deep_ep::layout::get_dispatch_layout<8>(int)", "ampere_sgemm_128x64_nn", "x" * 999]
)
def test_kernels_that_compute_are_not_named(tmp_path, name):
    record = read(written(tmp_path, kernel(1), {**kernel(9), "name": name, "args": {"stream": 7}}))
    assert (record.lost, record.losses, record.notes) == (0, (), ())


BARE = {**kernel(9), "args": {"stream": 7}}


@pytest.mark.parametrize(
    ("events", "refusal", "hint"),
    [
        ([BARE], "1 ncclDevKernel_AllReduce_Sum_f32_RING_LL", "PyTorch 2.3 or later"),
        (
            [{**kernel(1), "cat": "cpu_op", "name": "record_param_comms"}],
            "call of a collective that says its bytes",
            "ProfilerActivity.CUDA",
        ),
        ([{**gloo(1), "args": {}}], "", "record_shapes=True"),
        ([kernel(1), {**BARE, "name": "ncclDevKernel_SendRecv(x)"}], None, "messages in a batch"),
        ([kernel(1), BARE], None, None),
        ([kernel(1), {**kernel(2), "dur": "text"}], None, None),
        ([{**kernel(1), "ts": 0}], "", None),
    ],
)
def test_a_hint_is_given_only_where_its_condition_holds(tmp_path, events, refusal, hint):
    try:
        found, message = read(written(tmp_path, *events)).hint, None
    except RecordError as error:
        found, message = error.hint, error.message
    assert message is None if refusal is None else refusal in message
    assert found is None if hint is None else hint in found


def test_collectives_that_are_only_requested_count_as_lost(tmp_path):
    """Lack kernels, as with copy engines. Groups of one send nothing."""
    request = {**kernel(3, **{"Collective name": "_allgather_base"}), "cat": "cpu_op", "name": "record_param_comms"}
    alone = {**request, "args": {**request["args"], "Collective name": "alltoall", "Group size": 1}}
    record = read(written(tmp_path, kernel(1), request, request, alone))
    assert (len(record.calls), record.lost) == (1, 2)
    assert "2 all-gather of record_param_comms (found no kernel that ran it" in record.losses[0]


@pytest.mark.parametrize("times", [{"ts": 0.0, "dur": 0.0}, {"dur": 0.0}, {"ts": 0}, {"ts": None}, {"dur": "12"}])
def test_a_call_without_times_counts_as_lost(tmp_path, times):
    record = read(written(tmp_path, kernel(1), {**kernel(1), **times}))
    assert (len(record.calls), record.lost) == (1, 1)
    assert f"(field {'ts' if 'ts' in times else 'dur'}: found" in record.losses[0]


def test_a_key_with_two_values_counts_as_lost_and_one_given_twice_does_not(tmp_path):
    path = written(tmp_path, kernel(1), {**kernel(1), "name": "ncclKernel_twice"})
    text = path.read_text().replace('"Seq": 7', '"Seq": 7, "Seq": 7')
    path.write_text(text)
    assert (len(read(path).calls), read(path).lost) == (2, 0)
    place = text.rindex('"ts": 1')
    path.write_text(text[:place] + '"ts": 5, ' + text[place:])
    assert (len(read(path).calls), read(path).lost) == (1, 1)
    assert "field ts: found several values" in read(path).losses[0]


@pytest.mark.parametrize(
    "groups",
    [
        ["0"],
        ["0", "1"],
        [{"pg_name": "0", "pg_size": 2, "ranks": "[0, 1]"}],
        [{"pg_name": 0, "pg_size": 2, "ranks": [0, 1]}],
        [{"pg_name": "0", "pg_size": 2, "ranks": []}],
        [{"pg_desc": "default_pg", "ranks": {"0": 0}}],
        '[{"pg_name": "0", "ranks": [0, 1]}]',
        None,
    ],
    ids=str,
)
def test_groups_are_listed_in_several_ways(tmp_path, groups):
    info = {"backend": "nccl", "rank": 1, "world_size": 2, "pg_config": groups}
    record = read(written(tmp_path, kernel(1), distributedInfo=info))
    assert (len(record.calls), record.lost, record.members) == (1, 0, {"0": (0, 1)})


@pytest.mark.parametrize(
    "ranks",
    ["[0, 1]", "[0,1]", "[ 0 , 1 ]", "(0, 1)", "0, 1", "['0', '1']", '["0", "1"]', ["0", "1"], "[0, 1, ...]", "", None],
    ids=str,
)
def test_ranks_are_written_in_several_ways(tmp_path, ranks):
    record = read(written(tmp_path, kernel(1, **{"Process Group Ranks": ranks})))
    assert (len(record.calls), record.members) == (1, {"0": (0, 1)})
    info = {"rank": 1, "world_size": 2, "pg_config": [{"pg_name": "0", "pg_size": 2, "ranks": ranks}]}
    assert read(written(tmp_path, kernel(1), distributedInfo=info)).members == {"0": (0, 1)}


@pytest.mark.parametrize("ranks", ["[0 1]", "[0, 1", "0-1", "[0, x]", "[-1, 0]", "[, 1]", "[...]", [0.5], {}, 5, True])
def test_ranks_that_are_none_count_as_lost(tmp_path, ranks):
    record = read(written(tmp_path, kernel(1), kernel(2, **{"Process Group Ranks": ranks})))
    assert (len(record.calls), record.lost) == (1, 1)
    assert "field Process Group Ranks: found" in record.losses[0]


@pytest.mark.parametrize(
    ("recorded", "said"),
    [
        ({"In msg nelems": 0}, "field In msg nelems: found 0, expected as all-reduce does of Out msg nelems, 1000"),
        ({"Out msg nelems": 0}, "field In msg nelems: found 1000, expected as all-reduce does"),
        ({"Collective name": "_reduce_scatter_base", "In msg nelems": 0}, "found 0, expected as reduce-scatter does"),
    ],
)
def test_sizes_that_contradict_each_other_count_as_lost(tmp_path, recorded, said):
    record = read(written(tmp_path, kernel(1), kernel(2, **recorded)))
    assert (len(record.calls), record.lost) == (1, 1)
    assert said in record.losses[0]


@pytest.mark.parametrize(
    ("dtype", "size"), [("ComplexDouble", 16), ("UInt64", 8), ("UInt32", 4), ("UInt16", 2), ("Float8_e8m0fnu", 1)]
)
def test_every_type_has_its_size(tmp_path, dtype, size):
    assert read(written(tmp_path, kernel(1, dtype=dtype))).calls[0].payload_bytes == 1000 * size


@pytest.mark.parametrize("number", ["nan", "-nan", "inf", "-inf"])
def test_numbers_as_cpp_prints_them_are_read(tmp_path, number):
    """Kineto writes so what it computes of GPU properties that are 0."""
    other = {"ph": "X", "cat": "cpu_op", "name": "x: inf, y", "args": {"blocks per SM": 1.25}}
    path = written(tmp_path, kernel(1), other, {**kernel(9), "dur": 1.25})
    path.write_text(path.read_text().replace("1.25", number))
    record = read(path)
    assert (len(record.calls), record.lost) == (1, 1)
    assert "field dur: found " in record.losses[0]


@pytest.mark.parametrize(
    ("value", "said"), [("9" * 5000, "a number of thousands of digits"), ("[" * 99_999, "nested too deep")]
)
def test_undecodable_json_is_refused_with_our_own_message(tmp_path, value, said):
    path = written(tmp_path, kernel(1))
    path.write_text(path.read_text().replace("2.5", value))
    with pytest.raises(RecordError, match=rf"trace.json: found no JSON \({said}\)"):
        read(path)


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ("default_pg", "field pg_config: found text"),
        ({"0": [0, 1]}, "field pg_config: found an object, expected a list"),
        ([None], r"pg_config\[0\]: .*found none"),
        ([{"pg_name": None, "ranks": [0, 1]}], r"pg_config\[0\]: field pg_name: found none"),
        ([{"pg_name": "0", "ranks": [0, "x"]}], r"pg_config\[0\]: field ranks: found a list, expected a list of ranks"),
        ([{"pg_name": "0", "ranks": [0, 7]}], r"pg_config\[0\]: field ranks: found a list, expected different ranks"),
        ([*GROUPS, {"pg_name": "0", "ranks": [1, 0]}], r"pg_config\[1\]: found '0' again, with other ranks"),
    ],
    ids=str,
)
def test_a_wrong_list_of_groups_is_refused_by_its_field(tmp_path, groups, said):
    info = {"backend": "nccl", "rank": 1, "world_size": 2, "pg_config": groups}
    with pytest.raises(RecordError, match=f"trace.json: distributedInfo: {said}"):
        read(written(tmp_path, kernel(1), distributedInfo=info))


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ({"schemaVersion": 2}, "field schemaVersion: found 2"),
        ({"baseTimeNanoseconds": None}, "field baseTimeNanoseconds: found none"),
        ({"baseTimeNanoseconds": 2**70}, "field baseTimeNanoseconds: found a larger number"),
        ({"distributedInfo": {"rank": True, "world_size": 2}}, "field rank: found True, expected .* from 0 to 1"),
        ({"distributedInfo": {"rank": 2, "world_size": 2}}, "field rank: found 2, expected .* from 0 to 1"),
        ({"distributedInfo": {"rank": 0, "world_size": 1e9}}, "field world_size: found 1000000000.0"),
    ],
)
def test_a_wrong_header_is_refused_by_its_field(tmp_path, header, said):
    with pytest.raises(RecordError, match=f"trace.json: .*{said}") as refused:
        read(written(tmp_path, kernel(1), **header))
    assert refused.value.hint is None


def test_gloo_is_counted_where_there_are_no_kernels(tmp_path):
    info = {"backend": "gloo", "rank": 0, "world_size": 2, "pg_config": GROUPS}
    events = (gloo(2), gloo(9, "all_gather"), gloo(20, "barrier", ()), gloo(30, "send"))
    record = read(written(tmp_path, *events, distributedInfo=info))
    assert [(call.kind, call.number, call.payload_bytes) for call in record.calls] == [
        ("all-reduce", None, 4000),
        ("all-gather", None, 8000),
    ]
    assert record.losses == ("1 messages over gloo are left out: their events end when they are posted, not sent",)


def test_gloo_in_several_groups_is_refused(tmp_path):
    groups = [*GROUPS, {"pg_name": "1", "ranks": [0, 1]}]
    info = {"backend": "gloo", "rank": 0, "world_size": 2, "pg_config": groups}
    with pytest.raises(RecordError, match="process groups '0', '1': its events do not say of which group"):
        read(written(tmp_path, gloo(1), distributedInfo=info))


def test_steps_are_iterations(tmp_path):
    steps = [{"ph": "X", "name": f"ProfilerStep#{number}", "ts": 10 * number, "dur": 10} for number in (2, 1)]
    record = read(written(tmp_path, kernel(1), *steps))
    assert record.steps_ns == ((10**18 + 10_000, 10**18 + 20_000), (10**18 + 20_000, 10**18 + 30_000))


def test_a_step_is_counted_once_on_cpu_and_gpu(tmp_path):
    steps = [
        {"ph": "X", "cat": cat, "name": f"ProfilerStep#{number}", "ts": 10 * number + late, "dur": 10}
        for number in (9, 10, 11)
        for cat, late in (("gpu_user_annotation", 3), ("user_annotation", 0))
    ]
    record = read(written(tmp_path, kernel(1), *steps))
    assert [begin_ns - 10**18 for begin_ns, _ in record.steps_ns] == [90_000, 100_000, 110_000]
    assert record.notes == ()
    on_gpu = read(written(tmp_path, kernel(1), *steps[::2]))
    assert [begin_ns - 10**18 for begin_ns, _ in on_gpu.steps_ns] == [93_000, 103_000, 113_000]
    assert "are missing" in read(written(tmp_path, kernel(1), *steps[:2], *steps[4:])).notes[0]


@pytest.mark.parametrize(
    "encode",
    [
        lambda text: b"\xef\xbb\xbf" + text.encode(),
        lambda text: text.encode("utf-16"),
        lambda text: text.encode().replace(b"OTHER", b"\xff\xfe\x80"),
        lambda text: gzip.compress(text[:99].encode()) + gzip.compress(text[99:].encode()),
        lambda text: gzip.compress(b"\xef\xbb\xbf" + text.encode()),
        lambda text: gzip.compress(gzip.compress(text.encode())),
        lambda text: text.encode().replace(b"OTHER", b"OT\n\x01HER"),
    ],
    ids=[
        "UTF-8, marked",
        "UTF-16",
        "not UTF-8",
        "gzipped in parts",
        "gzipped, marked",
        "gzipped twice",
        "line break",
    ],
)
def test_a_trace_may_be_encoded_in_several_ways(tmp_path, encode):
    path = written(tmp_path, kernel(1), {**kernel(1), "cat": "cpu_op", "name": "OTHER"})
    expected = read(path).calls
    path.write_bytes(encode(path.read_text()))
    assert format_of(path).NAME == "PyTorch Kineto's trace"
    assert read(path).calls == expected


def test_a_gzipped_trace_is_read_whatever_its_name(tmp_path):
    path = written(tmp_path, kernel(1))
    packed = tmp_path / "named-otherwise.txt"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert format_of(packed).NAME == "PyTorch Kineto's trace"
    assert read(packed).calls == read(path).calls


@pytest.mark.parametrize("first", ['"schema": "1.1.0-chakra.0.0.4"', '"pid": 7'])
def test_an_execution_trace_is_called_by_its_name(tmp_path, first):
    path = tmp_path / "rank0_et.json"
    path.write_text(f"""{{{first}, "start_ts": 1, "nodes": [{{"id": 1, "rf_id": 1}}]}}""")
    with pytest.raises(RecordError, match="rank0_et.json: found PyTorch's execution trace") as error:
        format_of(path)
    assert "give the Kineto trace that was recorded with it" in str(error.value.hint)


def test_a_kineto_trace_without_rank_is_refused_with_a_hint(tmp_path):
    with pytest.raises(RecordError, match="does not say whose it is") as error:
        read(written(tmp_path, kernel(1), distributedInfo=None))
    assert "begin profiling after torch.distributed.init_process_group" in str(error.value.hint)


@pytest.mark.parametrize("content", ['{"traceEvents": [', '{"traceEvents": 5}', '{"deviceProperties": []}'])
def test_a_file_that_is_no_kineto_trace_is_refused(tmp_path, content):
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
