# SPDX-License-Identifier: Apache-2.0
"""Profiles from Chakra's execution traces without start times: graphs, schedules, refusals, and the command.

Expected times are counted by hand from the rules of HardwareResource.cc and Workload.cc of astra-sim/astra-sim 518bd51:
one computing and one communicating node at a time. Nodes are written with the fields and kinds of that repository's
examples/workload/microbenchmarks/generator_scripts, and of mlcommons/chakra, et_def.proto.
"""

import json
import os
import re
from pathlib import Path

import pytest

from analysis.records.call import RecordError
from analysis.records.execution_profile import make_execution_profile
from analysis.records.execution_schedule import Rates
from analysis.records.readers import chakra
from roundabout.cli.main import main
from roundabout.core.paths import ROOT
from roundabout.spec import EXPERIMENTS, Profile, load_experiment, load_profile
from tests.records.record_writers import bytes_field, collective_node, computing_node, et, graph_node, groups_node
from tests.records.traced_jobs import JOBS, TFLOPS, write_traces

pytestmark = pytest.mark.unit

EXAMPLES = Path(__file__).with_name("examples") / "chakra"
CATALOG = EXPERIMENTS / "catalog" / "fabrics"
VERSION = bytes_field(1, b"0.0.4")
RATES = Rates(payload_gbps=8)
"""A megabyte a millisecond."""
MB = 10**6


@pytest.fixture
def write(tmp_path):
    """Writes one trace for each rank, from the ranks' nodes, and returns the files."""

    def writing(*ranks: list[bytes], schema: bytes = VERSION) -> list[Path]:
        paths = [tmp_path / f"job.{rank}.et" for rank in range(len(ranks))]
        for path, nodes in zip(paths, ranks, strict=True):
            path.write_bytes(et([schema, *nodes]))
        return paths

    return writing


def profile(paths: list[Path], rates: Rates = RATES) -> Profile:
    return make_execution_profile(paths, "job", rates).profile


def parts(found: Profile) -> list[tuple[float, int | None]]:
    return [(phase.duration_ms, phase.bytes) for phase in found.phases]


def test_dependencies_order_computing_and_collectives(write):
    """Forward, an all-reduce, and a step that waits for it: nothing goes on beside anything else."""
    rank = [computing_node(5, 3000, 2), collective_node(2, 4 * MB, 1), computing_node(1, 10_000)]
    assert parts(profile(write(rank, rank))) == [(10, None), (4, 4 * MB), (3, None)]


@pytest.mark.parametrize(
    ("kind", "sent", "pattern"),
    [
        ("all-reduce", 6 * MB, "ring"),
        ("all-gather", 12 * MB, "ring"),
        ("reduce-scatter", 3 * MB, "ring"),
        ("all-to-all", 3 * MB, "all-to-all"),
    ],
    ids=["all-reduce", "all-gather", "reduce-scatter", "all-to-all"],
)
def test_comm_size_is_what_a_rank_puts_in(kind, sent, pattern, write):
    [phase] = profile(write(*[[collective_node(1, 4 * MB, kind=kind)]] * 4)).phases
    assert (phase.bytes, phase.alone_ms, phase.pattern) == (sent, sent / MB, pattern)


@pytest.mark.parametrize("through", [(), (graph_node(9, 1, 2), graph_node(8, 2, 9))], ids=["direct", "metadata"])
def test_computing_beside_a_collective_is_hidden_by_it(through, write):
    """The first of two buckets lasts 2 ms and the computing of the second 5 ms, which therefore is its phase.

    The second bucket lasts 6 ms; a step of 1 ms waits for both. Nodes that last no time end no phase.
    """
    rank = [
        computing_node(1, 3000),
        collective_node(2, 2 * MB, 1),
        computing_node(3, 5000, 1),
        collective_node(4, 6 * MB, 3),
        *through,
        computing_node(5, 1000, 8 if through else 2, 4),
    ]
    found = make_execution_profile(write(rank, rank), "job", RATES)
    assert parts(found.profile) == [(3, None), (5, 2 * MB), (6, 6 * MB), (1, None)]
    assert "beside computing that goes on for 3.000 ms more" in (found.profile.phases[1].source or "")
    assert any(sentence.startswith("Computing goes on beside collectives") for sentence in found.caveats)


def test_one_collective_at_a_time_goes_by_id(write):
    """Both are ready at once; the computing node waits for the second, so that the first is not waited for longer."""
    rank = [collective_node(8, 2 * MB), collective_node(3, MB), computing_node(9, 4000, 8)]
    assert parts(profile(write(rank, rank))) == [(1, MB), (2, 2 * MB), (4, None)]


def test_cpu_and_gpu_compute_at_the_same_time(write):
    on_cpu = computing_node(1, 5000, is_cpu_op=True)
    rank = [on_cpu, computing_node(2, 3000), collective_node(3, MB, 1, 2)]
    assert parts(profile(write(rank, rank))) == [(5, None), (1, MB)]


def test_operations_take_time_at_the_rate_of_the_gpu(write):
    rank = [graph_node(1, 4, num_ops=6 * 10**12), collective_node(2, MB, 1)]
    paths = write(rank, rank)
    with pytest.raises(RecordError, match="node 1 .*found num_ops and no duration_micros") as refused:
        profile(paths)
    assert refused.value.hint == "give the GPU's rate: --tflops 400"
    assert parts(profile(paths, Rates(8, tflops=400))) == [(15, None), (1, MB)]


def test_groups_are_read_from_a_file_of_astra_sim(write, tmp_path):
    """Tensors in pairs of neighbors, then data in pairs of the others."""
    ranks = [
        [
            collective_node(1, MB, pg_name=f"{rank // 2 + 1}"),
            collective_node(2, 2 * MB, 1, pg_name=f"{rank % 2 + 3}"),
        ]
        for rank in range(4)
    ]
    paths = write(*ranks)
    with pytest.raises(RecordError, match="pg_name: found '1', expected a group with rank 0"):
        profile(paths)
    groups = tmp_path / "groups.json"
    groups.write_text(json.dumps({"1": [0, 1], "2": [2, 3], "3": [0, 2], "4": [1, 3]}))
    found = profile([*paths, groups])
    assert [phase.groups for phase in found.phases] == [((0, 1), (2, 3)), ((0, 2), (1, 3))]
    assert found.workers == 4
    groups.write_text(json.dumps({"1": [0, 1], "2": [2, 3], "3": [0, 2], "4": [1, 1]}))
    with pytest.raises(RecordError, match="groups.json: found no groups"):
        profile([*paths, groups])
    with pytest.raises(RecordError, match="found groups.json, notes.txt beside traces, expected one file of groups at"):
        profile([*paths, groups, tmp_path / "notes.txt"])


def test_a_pipe_is_refused_because_its_writer_may_never_come(write, tmp_path):
    os.mkfifo(tmp_path / "groups.json")
    with pytest.raises(RecordError, match="groups.json: found no plain file, expected one"):
        profile([*write([computing_node(1, 10)]), tmp_path / "groups.json"])


def test_a_rank_is_in_the_group_that_its_own_trace_lists(write):
    """Each trace may list the groups of its rank alone, under the same name."""
    ranks = [
        [groups_node({"pair": pair}), collective_node(1, MB, pg_name="pair")]
        for pair in ((0, 1), (0, 1), (2, 3), (2, 3))
    ]
    assert profile(write(*ranks)).phases[0].groups == ((0, 1), (2, 3))


@pytest.mark.parametrize("schema", chakra.SCHEMAS[:-1])
def test_what_chakra_s_converter_writes_is_played(schema, tmp_path):
    """The converter writes no root node, times of the network that the job ran on, and the CPU's calls."""
    content = (EXAMPLES / f"converted-{schema}.0.et").read_bytes()
    paths = [tmp_path / f"x.{rank}.et" for rank in range(2)]
    for path in paths:
        path.write_bytes(content)
    found = make_execution_profile(paths, "job", Rates(391))
    assert [phase.bytes for phase in found.profile.phases] == [None, 4 * 6553600, 4 * 1048576, 4 * 1048576]
    said = " ".join(found.caveats)
    assert "2 nodes that others wait for are not in the traces" in said
    assert "6 collectives have a duration_micros" in said
    assert "2 nodes last no time (METADATA_NODE)" in said


def test_json_is_read_alike(tmp_path, write):
    rank = [computing_node(1, 2000, is_cpu_op=False), collective_node(2, MB, 1, involved_dim=(True, True))]
    nodes = [
        {"version": "0.0.4"},
        {
            "id": "1",
            "type": "COMP_NODE",
            "durationMicros": "2000",
            "attr": [{"name": "is_cpu_op", "boolVal": False}],
        },
        {
            "id": "2",
            "type": "COMM_COLL_NODE",
            "dataDeps": ["1"],
            "attr": [
                {"name": "comm_type", "int64Val": "0"},
                {"name": "comm_size", "int64Val": str(MB)},
                {"name": "involved_dim", "boolList": {"values": [True, True]}},
            ],
        },
    ]
    paths = [tmp_path / f"text.{number}.json" for number in range(2)]
    for path in paths:
        path.write_text("".join(map(json.dumps, nodes)))
    assert parts(profile(paths)) == parts(profile(write(rank, rank))) == [(2, None), (1, MB)]


ONE = [collective_node(1, MB)]
EMPTY = collective_node(1, 0)
SCATTER = graph_node(1, 7, comm_type=3, comm_size=MB)


@pytest.mark.parametrize(
    ("ranks", "error"),
    [
        ([ONE], "found ranks 0, expected each rank from 0 on, two at least"),
        ([ONE, [collective_node(1, 2 * MB)]], "found all-reduce of 2000000 bytes among 2 as collective 1"),
        ([[*ONE, collective_node(2, MB)], ONE], "job.1.et: found none as collective 2, but all-reduce"),
        ([[computing_node(1, 10)]] * 2, "job.0.et: found no collective between ranks"),
        ([[graph_node(4, 5, comm_size=MB)]] * 2, r"job.0.et: message 1, node 4 .*: found a message \(COMM_SEND_NODE\)"),
        ([[SCATTER]] * 2, r"message 1, node 1 .*: comm_type: found 3, expected one of 0 \(all-reduce\)"),
        ([[EMPTY]] * 2, "message 1, node 1 .*: field comm_size: found 0, expected a whole number from 1"),
        ([[collective_node(1, MB, involved_dim=(True, False))]] * 2, "message 1, .* involved_dim: found a dimension"),
        ([[*ONE, *ONE]] * 2, "message 2, node 1 .*: found a second node of this id"),
        ([[collective_node(1, MB, 2), computing_node(2, 10, 1)]] * 2, r"wait for each other, among \[1, 2\]"),
        ([[bytes_field(2, b"n")[:-1]]] * 2, "job.0.et: message 1: found no Node"),
    ],
    ids=["one", "other bytes", "fewer", "none", "message", "scatter", "no bytes", "part", "twice", "cycle", "damaged"],
)  # fmt: skip
def test_a_graph_that_no_profile_has_is_refused(ranks, error, write):
    with pytest.raises(RecordError, match=error):
        profile(write(*ranks))


def test_a_folder_without_traces_is_refused():
    with pytest.raises(RecordError, match="no files: found ranks none, expected each rank from 0 on"):
        profile([])


def test_other_schemas_are_refused(write):
    with pytest.raises(RecordError, match="schema: found '9.9', expected one of"):
        profile(write(ONE, ONE, schema=bytes_field(1, b"9.9")))


def test_an_empty_trace_is_called_empty(write):
    paths = write(ONE, ONE)
    paths[1].write_bytes(b"")
    with pytest.raises(RecordError, match="job.1.et: found an empty file"):
        profile(paths)


def test_only_attributes_that_a_trace_has_are_named_as_not_used(write):
    plain, tagged = [collective_node(1, MB)], [collective_node(1, MB, comm_tag=3)]
    found = [make_execution_profile(write(plain, other), "job", RATES).caveats for other in (plain, tagged)]
    unused = [[each for each in caveats if "not used" in each] for caveats in found]
    assert unused == [[], ["Attributes that are not used: comm_tag."]]


def test_nodes_of_unknown_types_are_counted_and_named(write):
    rank = [graph_node(1, 2, tensor_size=64), graph_node(2, 77, 1), collective_node(3, MB, 2)]
    found = make_execution_profile(write(rank, rank), "job", RATES)
    assert parts(found.profile) == [(1, MB)]
    assert "2 nodes last no time (MEM_LOAD_NODE)." in found.caveats
    assert "2 nodes last no time (type 77)." in found.caveats


def test_the_longest_computing_of_the_ranks_is_taken(write):
    ranks = [[computing_node(1, lasts), collective_node(2, MB, 1)] for lasts in (4000, 5000)]
    found = make_execution_profile(write(*ranks), "job", RATES)
    assert parts(found.profile) == [(5, None), (1, MB)]
    assert "Ranks take 5.000 to 6.000 ms alone: of each phase, the longest is taken." in found.caveats


def test_the_command_stores_a_profile(write, tmp_path, monkeypatch, capsys):
    rank = [computing_node(1, 2000), collective_node(2, MB, 1)]
    write(rank, rank)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    folder = tmp_path / "traces"
    folder.mkdir()
    for path in tmp_path.glob("job.*.et"):
        path.rename(folder / path.name)
    assert main(["profile", "chakra", str(folder), "--payload-gbps", "8", "--save", "traced", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [phase.get("bytes") for phase in printed["profile"]["phases"]] == [None, MB]
    assert (tmp_path / "here" / printed["saved"]).is_file()


def test_the_guide_s_example_runs_with_the_saved_profile(tmp_path, monkeypatch):
    text = (ROOT / "docs" / "how-to" / "execution-traces.md").read_text()
    make, run = (re.findall(r"^roundabout (.+)$", block, re.M) for block in re.findall(r"```sh\n(.*?)```", text, re.S))
    [experiment] = re.findall(r"```yaml\n(.*?)```", text, re.S)
    monkeypatch.chdir(tmp_path)
    Path("traces").mkdir()
    write_traces(Path("traces"), "sharded")
    assert [main(line.split()) for line in make] == [0, 0]
    Path("shared.yaml").write_text(experiment)
    assert [main(line.split()) for line in run] == [0]
    phases = load_profile(str(Path("profiles/traced.yaml"))).phases
    played = load_experiment(Path("shared.yaml")).cells[0].spec.jobs
    assert [each.profile.phases for each in played.values()] == [phases, phases]


def test_the_experiment_of_new_hides_no_saved_profile_of_mine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "shared"]) == 0
    assert set(load_experiment(Path("shared.yaml")).profiles) == {"first-guess"}


@pytest.mark.parametrize("job", JOBS)
def test_profiles_of_the_catalog_are_those_of_their_traces(job, tmp_path):
    made = make_execution_profile(write_traces(tmp_path, job), f"traced-{job}", Rates(391, TFLOPS)).profile
    assert made == load_profile(made.name)


@pytest.mark.parametrize("ranks", [4, 8, 16])
@pytest.mark.parametrize("kind", ["all-reduce", "all-gather", "reduce-scatter", "all-to-all"])
def test_astra_sim_s_microbenchmarks_have_the_bytes_of_the_catalog(kind, ranks, write):
    """Traces as astra-sim/astra-sim 518bd51, examples/workload/microbenchmarks/generator_scripts, writes them."""
    node = collective_node(ranks, 2**20, is_cpu_op=False, kind=kind)
    [phase] = profile(write(*[[node]] * ranks)).phases
    [played] = load_experiment(CATALOG / "astra-sim-collectives.yaml").profiles[f"{kind}-{ranks}"].phases
    assert (phase.bytes, phase.pattern) == (played.bytes, played.pattern)
