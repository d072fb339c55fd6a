# SPDX-License-Identifier: Apache-2.0
"""Every reader of foreign files, with valid samples; what it returns is checked, and what it raises is a refusal."""

import json
import math
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from analysis.advice import senders, sources
from analysis.advice.advice import read_placements
from analysis.advice.observed_jobs import ObservedJob, observe_counters
from analysis.advice.topologies import read_topology
from analysis.records.call import Record, RecordError
from analysis.records.execution_profile import make_execution_profile
from analysis.records.execution_schedule import Rates
from analysis.records.readers import chakra, inspector, kineto, nccl_tests
from roundabout.core.errors import RoundaboutError, UsageError
from roundabout.models.cluster.placement import host_tree_of
from roundabout.plan import make_plan
from roundabout.spec import EXPERIMENTS, SpecError, load_experiment
from roundabout.spec.trace_readers import lingjun
from roundabout.testbeds.rack.inventory import read_inventory
from roundabout.testbeds.rack.variables import playbook_variables
from tests.analysis.advice.advice_inputs import GBPS, HOSTS, JOBS, csv, rows, series, slurm
from tests.analysis.advice.scheduler_files import HYPERNODES, TWO_LEVELS
from tests.rack.conftest import examples
from tests.records.record_writers import computing_node, et, graph_node, groups_node, metadata
from tests.spec.cluster_traces.recorded_jobs import JOB, NEVER, RUNNING, TOPOLOGY
from tests.spec.cluster_traces.trace_files import TABLES, read_file
from tests.spec.conftest import RICH

Files = dict[str, bytes]

RECORDS = Path(__file__).parents[1] / "records" / "examples"
CASES = Path(__file__).parents[1] / "cases"
INVENTORIES = Path(__file__).with_name("inventories")
END_NS = 2**63


@dataclass(frozen=True)
class Reader:
    """A reader, and valid samples of what it reads.

    A sample is the content of one file or more by name. `read` gets the folder that contains them and the name of the
    damaged one. It fails if the result is impossible.
    """

    read: Callable[[Path, str], object]
    samples: list[Files]
    form: str = ""
    words: tuple[str, ...] = ()
    refusal: type[RoundaboutError] = SpecError
    prepare: Callable[[Path], object] = Path.exists


def _read_experiment(folder: Path, damaged: str) -> None:
    name = damaged if damaged.startswith("catalog") else "catalog/rich.yaml"
    experiment = load_experiment(folder / name, folder)
    assert len(make_plan(experiment, {}, {}).trials) == experiment.trial_count
    json.dumps(experiment.model_dump(mode="json"), allow_nan=False)


def _copy_library(folder: Path) -> None:
    shutil.copytree(EXPERIMENTS, folder, dirs_exist_ok=True)


EXPERIMENT_FILES = {"catalog/rich.yaml": RICH.encode()} | {
    name: (EXPERIMENTS / name).read_bytes()
    for name in (
        "catalog/hotnets22/unfair-vgg19.yaml",
        "topologies/small/dumbbell-2x2.yaml",
        "profiles/hotnets22/vgg19-fig1.yaml",
        "profiles/cassini/bert-8.yaml",
    )
}


def _read_inventory(folder: Path, damaged: str) -> None:
    json.dumps(playbook_variables(read_inventory(folder / damaged)), allow_nan=False)


def _small_inventory() -> bytes:
    """Return two servers and two switches of the inventory: it has all kinds of values that a large one has."""
    tree: dict[str, Any] = yaml.safe_load(examples()["twelve"])
    kept = ("s0", "s2", "L1")
    groups = tree["all"]["children"]
    groups["rack"]["hosts"] = {name: each for name, each in groups["rack"]["hosts"].items() if name in kept}
    for switch in groups["switches"]["hosts"].values():
        switch["ports"] = {link: port for link, port in switch["ports"].items() if link in kept}
    return yaml.safe_dump(tree).encode()


def _read_record(module: Any, folder: Path, damaged: str) -> None:
    module.recognizes((folder / damaged).read_bytes()[: 1 << 16])
    found = module.read(folder / damaged)
    if isinstance(found, Record):
        assert found.calls and found.lost >= 0
        for call in found.calls:
            assert 0 <= call.begin_ns <= call.end_ns < END_NS and 0 <= call.payload_bytes < END_NS


def _record_reader(module: Any, name: str, paths: Iterable[Path], form: str = "") -> Reader:
    samples = [{name: path.read_bytes()} for path in sorted(paths)]
    return Reader(partial(_read_record, module), samples, form, refusal=RecordError)


def _read_graphs(folder: Path, _damaged: str) -> None:
    found = make_execution_profile(sorted(each for each in folder.iterdir() if each.is_file()), "job", Rates(391, 400))
    assert math.isfinite(found.profile.alone_ms) and found.profile.comm_bytes > 0


def _graphs(ranks: int) -> Files:
    """Traces without start times: computing, its operations, a collective in pairs, and one of all ranks."""
    groups = {str(group + 1): (2 * group, 2 * group + 1) for group in range(ranks // 2)}
    return {
        f"job.{rank}.et": et(
            [
                metadata("0.0.4"),
                groups_node(groups),
                computing_node(1, 900, 0),
                graph_node(2, 4, 1, num_ops=10**12, tensor_size=64),
                graph_node(3, 7, 1, comm_type=2, comm_size=10**6, pg_name=str(rank // 2 + 1)),
                graph_node(4, 7, 2, 3, comm_type=0, comm_size=10**7, involved_dim=(True,)),
            ]
        )
        for rank in range(ranks)
    }


def _read_counters(folder: Path, damaged: str) -> None:
    for job in observe_counters(sources.read(str(folder / damaged), HOSTS).hosts, JOBS, GBPS):
        assert job.found or job.reason


def _read_jobs(folder: Path, damaged: str) -> None:
    found = senders.read_senders(folder / damaged).senders
    assert found and all(hosts and all(isinstance(host, str) and host for host in hosts) for hosts in found.values())


def _read_placements(folder: Path, damaged: str) -> None:
    for each in read_placements(folder / damaged, [ObservedJob("j1"), ObservedJob("j2")]):
        assert all({*jobs} <= {"j1", "j2"} for jobs in each.crossing.values())


def _read_trace(kind: str, first: str, folder: Path, _damaged: str) -> None:
    for each in read_file(folder, kind, first):
        assert each.gpus >= 1 and math.isfinite(each.at_s)


def _trace_reader(kind: str) -> Reader:
    sample = {each.file: each.text().encode() for each in TABLES[kind]}
    return Reader(partial(_read_trace, kind, TABLES[kind][0].file), [sample])


def _read_scheduler_topology(folder: Path, damaged: str) -> None:
    topology, _ = read_topology(str(folder / damaged), ("n1", "node-9"), GBPS)
    assert topology.hosts and topology.is_tree and host_tree_of(topology).hosts


def _read_topology(folder: Path, damaged: str) -> None:
    lingjun.read_topology(folder / damaged, gpus_per_host=8, line_rate_gbps=50, payload_rate_gbps=43)


ANSWER = {"status": "success", "data": {"resultType": "matrix", "result": [series("n1"), series("n2")]}}
PHILLY = [JOB, RUNNING, NEVER]
ADVICE_WORDS = ("n1", "j1", "n[1-2]", "n[2-1]", "n[", "on", "1", "", "nodes", "jobs", "RUNNING", "PENDING", "L1")

READERS = {
    "experiments": Reader(
        _read_experiment,
        [EXPERIMENT_FILES],
        "yaml",
        ("", "name", "j1", "s0", "s9", "dcqcn", "variant", "fair", "bert-8", "../bert-8", "yes", "1", "~", "a.b", "\0"),
        prepare=_copy_library,
    ),
    "inventories": Reader(
        _read_inventory,
        [
            {"inventory": content}
            for content in (
                _small_inventory(),
                *(text.encode() for text in examples().values()),
                *(path.read_bytes() for path in sorted(INVENTORIES.iterdir())),
            )
        ],
        "yaml",
        ("", "all", "vars", "hosts", "s0", "s9", "tor0", "L1", "nic", "nics", "table", "link", "inbox",
         "T_us", "-oProxyCommand=x", "{{ x }}", "10.10.0.1/24", "0.0.0.0/0", "fe80::1/64", "yes", "1", "~", "a/b",
         "\0", "ansible_become_password"),
    ),
    "kineto": _record_reader(kineto, "r0.json", CASES.glob("kineto-*/r0.json"), "json"),
    "inspector": _record_reader(inspector, "n1-pid42.log", (RECORDS / "inspector").iterdir()),
    "chakra": _record_reader(chakra, "trace.0.et", (RECORDS / "chakra").iterdir()),
    "chakra's graphs": Reader(_read_graphs, [_graphs(4), _graphs(2)], refusal=RecordError),
    "nccl-tests": _record_reader(nccl_tests, "out.json", (RECORDS / "nccl-tests").iterdir(), "json"),
    "counters of Prometheus": Reader(
        _read_counters, [{"a.json": json.dumps(ANSWER).encode()}], "json", ADVICE_WORDS, UsageError
    ),
    "counters in a table": Reader(_read_counters, [{"a.csv": csv(rows()[:322]).encode()}], refusal=UsageError),
    "jobs": Reader(_read_jobs, [{"jobs.yaml": b"j1: [n1, n2]\nj2: n[3-4,07]\n"}], "yaml", ADVICE_WORDS),
    "jobs of Slurm": Reader(
        _read_jobs,
        [{"q.json": json.dumps({"jobs": [slurm(), slurm(job_id=8, nodes="n3,n4")]}, indent=1).encode()}],
        "json",
        ADVICE_WORDS,
    ),
    "placements": Reader(
        _read_placements, [{"p.yaml": b"spread: {L1: [j1], L2: [j2]}\none:\n  L1: [j1, j2]\n"}], "yaml", ADVICE_WORDS
    ),
    "topology of Slurm": Reader(_read_scheduler_topology, [{"topology.conf": TWO_LEVELS.encode()}]),
    "HyperNodes": Reader(
        _read_scheduler_topology, [{"hypernodes.yaml": HYPERNODES.encode()}], "yaml", ("", "s0", "s9", "node-0", "Node")
    ),
    **{f"trace: {kind}": _trace_reader(kind) for kind in TABLES},
    "trace: philly": Reader(
        partial(_read_trace, "philly", "cluster_job_log"),
        [
            {"cluster_job_log": json.dumps(PHILLY, indent=1).encode()},
            {"cluster_job_log": "\n".join(map(json.dumps, PHILLY)).encode()},
        ],
        "json",
        ("None", "2017-10-07 01:12:09", "attempts", "gpus"),
    ),
    "topology of lingjun": Reader(_read_topology, [{"topo.csv": TOPOLOGY.encode()}]),
}  # fmt: skip
