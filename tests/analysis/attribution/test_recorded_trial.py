# SPDX-License-Identifier: Apache-2.0
"""`roundabout explain --records`: jobs of a cluster, by their records, as the runs that these were made of are."""

import json
import shutil
from bisect import bisect_right
from contextlib import chdir
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

import roundabout
from analysis.attribution import recorded_jobs
from analysis.attribution.attribution import Attribution
from analysis.attribution.counted_jobs import read_counted_jobs
from analysis.attribution.recorded_jobs import RecordedJob, cut_to_common_time, place_ranks, read_recorded_jobs
from analysis.attribution.recorded_trial import RecordSources, read_recorded_trial
from analysis.reading.data import query
from analysis.records.call import RecordError
from analysis.records.call_iterations import CallIterations, find_call_iterations
from analysis.records.collective_groups import find_families
from analysis.records.job import join_records
from analysis.records.profile import read_records
from roundabout import api
from roundabout.cli.main import main
from roundabout.core.errors import UsageError
from roundabout.spec import EXPERIMENTS, load_topology
from roundabout.terminal.replays import explain_records, explain_run
from tests.analysis.attribution.cluster_records import write_records
from tests.records.record_writers import Inspector
from tests.records.synthetic_records import MS, Made, data_parallel
from tests.two_phases import two_phases

pytestmark = pytest.mark.unit

COMPUTE_MS, SEND_MS, SIZE = 4.0, 6.0, 24_000_000
TRACES = Path(__file__).parents[2] / "records" / "ddp-lab"
NCCL = EXPERIMENTS / "records" / "ddp-lab-nccl"
HOSTS = {"j1": ["s0", "s2"], "j2": ["s1", "s3"]}


def computed(folder, testbed, **fields):
    """Return a run of j1 and j2 on one link, for which they begin at once."""
    file = {
        "schema": 1,
        "name": "recorded",
        "about": "two jobs that share a link",
        "topology": "dumbbell-2x2",
        "profiles": {"any": two_phases(COMPUTE_MS, SIZE, SEND_MS)},
        "profile": "any",
        "jobs": {name: {"workers": hosts} for name, hosts in HOSTS.items()},
        "transport": {"name": "dcqcn"},
        "iterations": 12,
    }
    experiment = roundabout.build_experiment(file | fields)
    return roundabout.run_experiment(experiment, testbed=testbed, runs=folder / "runs", quiet=True)


def cluster(line_gbps, payload_gbps):
    """Return the file of a topology of two hosts."""
    topology = load_topology("pair").model_dump(mode="json", by_alias=True, exclude_defaults=True)
    for rates in (topology, *topology["links"]):
        rates |= {"line_rate_gbps": line_gbps, "payload_rate_gbps": payload_gbps}
    return yaml.safe_dump({"schema": 1} | topology)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """Records of two jobs that collide in each iteration, flow by flow, and those of each alone in `alone`."""
    folder = tmp_path_factory.mktemp("shared")
    write_records(computed(folder, "fluid"), folder / "traces")
    lone = computed(folder, "fluid", one_job_at_a_time=True)
    for trial in range(len(lone.trials())):
        write_records(lone, folder / "alone", trial)
    return folder


def parts(found: Attribution, job="j1"):
    (delay,) = (each for each in found.jobs if each.job == job)
    return {(part.cause, part.name): part.ms.value for part in delay.parts}


def test_the_neighbor_that_was_planted_is_named_with_the_part_that_a_run_gives_it(tmp_path):
    run = computed(tmp_path, "packets", iterations=8)
    write_records(run, tmp_path / "traces")
    lone = computed(tmp_path, "packets", iterations=8, one_job_at_a_time=True)
    for trial in range(len(lone.trials())):
        write_records(lone, tmp_path / "alone", trial)
    sources = RecordSources(tmp_path / "traces", "dumbbell-2x2", alone=tmp_path / "alone", transport="dcqcn")
    recorded, of_run = explain_records(sources), explain_run(run)
    assert recorded.model == "packets"
    for job, other in (("j1", "j2"), ("j2", "j1")):
        found, expected = parts(recorded, job), parts(of_run, job)
        assert found["job", other] == pytest.approx(expected["job", other], rel=0.03)
        # Replays draw computing times, by which rates are reduced at other instants.
        assert found["transport", "dcqcn"] == pytest.approx(expected["transport", "dcqcn"], rel=0.35)
        assert abs(found["unexplained", ""]) < 0.03 * (COMPUTE_MS + SEND_MS)
    assert all(part.ms.ci95 for delay in recorded.jobs for part in delay.parts)


def test_without_records_alone_jobs_are_taken_to_send_as_fast_as_links_allow(shared):
    found = explain_records(RecordSources(shared / "traces", "dumbbell-2x2"))
    at_link_rate_ms = SIZE * 8 / 43e6
    for delay in found.jobs:
        assert delay.alone_ms == pytest.approx(COMPUTE_MS + at_link_rate_ms, rel=1e-3)
        assert [part.cause for part in delay.named] == ["job"]
        assert sum(part.ms.value for part in delay.parts) == pytest.approx(delay.delay_ms.value)


def test_records_alone_give_each_job_its_own_pace(shared):
    found = explain_records(RecordSources(shared / "traces", "dumbbell-2x2", alone=shared / "alone"))
    for delay in found.jobs:
        assert delay.alone_ms == pytest.approx(COMPUTE_MS + SEND_MS, rel=1e-3)
        assert delay.iteration_ms == pytest.approx(COMPUTE_MS + 2 * SIZE * 8 / 43e6, rel=1e-3)
        assert abs(delay.unexplained.ms.value) < 0.01


def test_nothing_is_named_for_a_job_alone(shared):
    (delay,) = explain_records(RecordSources(shared / "alone/j1", "dumbbell-2x2", alone=shared / "alone")).jobs
    assert (delay.job, delay.named) == ("j1", ())


def test_a_slow_worker_is_named(tmp_path):
    lone = computed(tmp_path, "fluid", jobs={"j1": {"workers": HOSTS["j1"]}})
    write_records(lone, tmp_path / "traces", late={"j1": 1.5})
    (delay,) = explain_records(RecordSources(tmp_path / "traces", "dumbbell-2x2")).jobs
    assert [part.cause for part in delay.named] == ["slowest worker"]
    # One of two workers computes 1/1.5 as long, so the mean computes a sixth less than the slowest.
    assert delay.named[0].ms.value == pytest.approx(COMPUTE_MS / 6, rel=1e-3)


@pytest.mark.parametrize(("folder", "line_gbps", "payload_gbps"), [(TRACES, 0.5, 0.43), (NCCL, 16, 14.6)])
def test_nothing_is_named_for_jobs_that_really_trained_alone(folder, line_gbps, payload_gbps, tmp_path, capsys):
    """Over gloo in the lab, at its scale of 1:100, and over NCCL on a GPU, with about the rate of its loopback."""
    (tmp_path / "cluster.yaml").write_text(cluster(line_gbps, payload_gbps))
    (tmp_path / "jobs.yaml").write_text("ddp: [s0, s1]")
    words = ["--topology", str(tmp_path / "cluster.yaml"), "--jobs", str(tmp_path / "jobs.yaml"), "--json"]
    assert main(["explain", "--records", str(folder), *words]) == 0
    (delay,) = Attribution.model_validate(json.loads(capsys.readouterr().out)).jobs
    assert delay.job == "ddp"
    assert delay.named == ()
    assert abs(delay.delay_ms.value) < 0.01 * delay.alone_ms
    assert delay.delay_ms.ci95 is not None


def test_a_worker_that_comes_late_in_a_real_record_is_named_with_its_delay(tmp_path, monkeypatch):
    """Everything after a call of the slow worker is moved, and the other one waits for it in that call."""
    late_ms = 20

    def moved(call, rank, number):
        begin_ns, end_ns = (each + number * late_ms * MS for each in (call.begin_ns, call.end_ns))
        return replace(call, begin_ns=begin_ns - (0 if rank else late_ms * MS), end_ns=end_ns)

    what, real = read_records(sorted(TRACES.glob("*.json.gz")))
    slowed = []
    for rank, record in enumerate(real):
        buckets = [each for each in record.calls if each.kind == "all-reduce"]
        first_of_iteration = [each for each in buckets if each.payload_bytes == buckets[0].payload_bytes]
        begins_ns = [each.begin_ns for each in first_of_iteration]
        calls = tuple(moved(each, rank, bisect_right(begins_ns, each.begin_ns)) for each in buckets)
        slowed.append(replace(record, calls=calls, steps_ns=()))
    (tmp_path / "cluster.yaml").write_text(cluster(0.5, 0.43))
    (tmp_path / "jobs.yaml").write_text("ddp: [s0, s1]")
    sources = RecordSources(TRACES, str(tmp_path / "cluster.yaml"), jobs=tmp_path / "jobs.yaml")
    (before,) = explain_records(sources).jobs
    monkeypatch.setattr(recorded_jobs, "read_records", lambda _: (what, slowed))
    (after,) = explain_records(sources).jobs
    assert [part.cause for part in after.named] == ["slowest worker"]
    # One worker or the other came later before, by less than the delay: twice the part that it had.
    assert after.named[0].ms.value == pytest.approx(late_ms / 2, abs=before.parts[0].ms.value)


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """Byte counters of the hosts of two jobs that collide in each iteration, and their list, in one folder."""
    folder = tmp_path_factory.mktemp("counted")
    run = computed(folder, "fluid", profiles={"any": two_phases(100, 240_000_000, 60.0)}, iterations=20)
    write_records(run, folder / "traces")
    pq.write_table(query(run, "select controller_ns, host, tx_bytes from counters"), folder / "bytes.parquet")
    (folder / "jobs.yaml").write_text(yaml.safe_dump(HOSTS))
    return folder


def test_counters_give_the_parts_that_records_give(counted):
    by_bytes = RecordSources(counted / "bytes.parquet", "dumbbell-2x2", jobs=counted / "jobs.yaml")
    found, expected = (explain_records(each) for each in (by_bytes, RecordSources(counted / "traces", "dumbbell-2x2")))
    for job in HOSTS:
        assert parts(found, job) == pytest.approx(parts(expected, job), abs=0.1)


@pytest.mark.parametrize(
    ("jobs", "message"),
    [
        ({}, "found no --jobs, expected it"),
        ({"j1": ("s0", "s2"), "j2": ("s2", "s3")}, "job j1: cannot be separated from j2: host s2 sends for both"),
        ({"j1": ("s0", "s9")}, "job j1: found no counter of host s9"),
    ],
)
def test_counters_that_say_too_little_of_jobs_are_an_error(jobs, message, counted):
    with pytest.raises(UsageError, match=message):
        read_counted_jobs(counted / "bytes.parquet", jobs, 43)


def test_counters_without_a_period_are_an_error(tmp_path):
    rows = [f"{10 * at},{host},{100_000 * at}" for at in range(200) for host in ("s0", "s2")]
    (tmp_path / "bytes.csv").write_text("\n".join(["at_ms,host,tx_bytes", *rows]))
    with pytest.raises(UsageError, match="job j1: found .*expected"):
        read_counted_jobs(tmp_path / "bytes.csv", {"j1": ("s0", "s2")}, 43)


def test_jobs_of_slurm_are_found_by_name_and_number(shared, tmp_path):
    queue = {
        "jobs": [
            {"job_id": 17, "name": "j1", "job_state": ["RUNNING"], "nodes": "s[0,2]"},
            {"job_id": 18, "name": "other", "job_state": ["RUNNING"], "nodes": "s[1,3]"},
        ]
    }
    (tmp_path / "squeue.json").write_text(json.dumps(queue))
    shutil.copytree(shared / "traces", tmp_path / "traces")
    (tmp_path / "traces/j2").rename(tmp_path / "traces/18")
    found = explain_records(RecordSources(tmp_path / "traces", "dumbbell-2x2", jobs=tmp_path / "squeue.json"))
    assert [each.job for each in found.jobs] == ["other-18", "j1-17"]


def test_a_job_without_records_is_named_as_unknown(shared, tmp_path):
    (tmp_path / "jobs.yaml").write_text(yaml.safe_dump({**HOSTS, "j3": ["s0", "s1"]}))
    found = api.explain_records(shared / "traces", "dumbbell-2x2", jobs=tmp_path / "jobs.yaml")
    assert "jobs of --jobs without records, whose effect on others is unexplained: j3" in found.notes


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--records", "traces"], "found no --topology"),
        (["--topology", "pair"], "--topology: found no --records"),
        (["--records", "traces", "--topology", "pair", "some-run"], "found the run some-run beside it"),
        (["--records", "nowhere", "--topology", "pair"], "found neither a folder nor a file nowhere"),
        (["--records", "empty", "--topology", "pair"], "found no records in empty"),
        (["--records", "traces", "--topology", "pair"], "job j1: found host s2 in its records, expected one of s0"),
        (
            ["--records", "traces/j1", "--topology", "dumbbell-2x2", "--alone", "traces/j2"],
            "found the jobs j2 in --alone, expected one of j1",
        ),
        (["--records", "traces", "--topology", "dumbbell-2x2", "--model", "packets"], "found no --transport"),
        (["--records", "traces", "--topology", "dumbbell-2x2", "--jobs", "other.yaml"], "found folder j1, which is no"),
    ],
)
def test_an_option_that_is_missing_or_wrong_is_an_error(words, message, shared, tmp_path, capsys):
    (tmp_path / "traces").symlink_to(shared / "traces")
    (tmp_path / "empty").mkdir()
    (tmp_path / "other.yaml").write_text("other: [s0, s2]\nsecond: [s1, s3]")
    with chdir(tmp_path):
        assert main(["explain", *words]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_records_without_hosts_need_a_list_of_jobs():
    recorded = read_recorded_jobs(TRACES, {})["ddp-lab"]
    topology = load_topology("dumbbell-2x2")
    with pytest.raises(UsageError, match="rank0.json.gz names no host .* expected one"):
        place_ranks(recorded, topology, {})
    assert place_ranks(recorded, topology, {"ddp-lab": ("s0", "s2")}) == ("s0", "s2")
    with pytest.raises(UsageError, match="found 2 ranks for 3 hosts"):
        place_ranks(recorded, topology, {"ddp-lab": ("s0", "s1", "s2")})
    with pytest.raises(UsageError, match="found host n1 in --jobs"):
        place_ranks(recorded, topology, {"ddp-lab": ("s0", "n1")})
    with pytest.raises(UsageError, match="all ranks are on host s0"):
        place_ranks(recorded, topology, {"ddp-lab": ("s0",)})
    named = replace(recorded, hosts=("s0.example.org", "s2"))
    assert place_ranks(named, topology, {}) == ("s0", "s2")


def test_a_job_alone_has_as_many_ranks(shared, tmp_path):
    made = data_parallel(4, SIZE)
    (tmp_path / "alone/j1").mkdir(parents=True)
    for rank, calls in made.calls.items():
        (tmp_path / f"alone/j1/rank{rank}.log").write_bytes(Inspector(host=f"s{rank}").log(calls))
    with pytest.raises(UsageError, match="job j1: found 4 ranks in --alone, expected 2"):
        read_recorded_trial(RecordSources(shared / "traces", "dumbbell-2x2", alone=tmp_path / "alone"))


def test_records_of_different_times_are_an_error(shared):
    jobs = read_recorded_jobs(shared / "traces", {})
    late = jobs["j2"].iterations
    later = replace(jobs["j2"], iterations=replace(late, edges_ns=late.edges_ns + 10**9))
    with pytest.raises(UsageError, match="job j1: found 0 iterations in the time of all records"):
        cut_to_common_time({"j1": jobs["j1"], "j2": later})


def test_the_first_iterations_of_jobs_that_begin_together_are_both_kept():
    def made(begin_ns):
        edges_ns = begin_ns + np.arange(11) * 100 * MS
        iterations = CallIterations(edges_ns, np.full(10, 40.0), np.zeros(10), ())
        return RecordedJob("any", Path("any"), (), iterations)

    cut = cut_to_common_time({"j1": made(0), "j2": made(3 * MS), "j3": made(120 * MS)})
    assert [each.begin_ns for each in cut.values()] == [100 * MS, 103 * MS, 120 * MS]
    assert [len(each.iterations.computing_ms) for each in cut.values()] == [9, 9, 9]


def call_iterations(made):
    job = join_records(made.records())
    return find_call_iterations(job, find_families(job)[0])


def test_equal_calls_of_one_iteration_are_distinguished_by_their_gaps():
    found = call_iterations(data_parallel(2, 10**8))
    assert found.times_ms == pytest.approx(np.full(len(found.times_ms), 100.0))
    assert [(phase.bytes, phase.duration_ms) for phase in found.phases] == [(0, 60.0), (10**8, 40.0)]


def test_iterations_of_unlike_lengths_are_each_found():
    made, at_ms, lengths_ms = Made(2), 0, [100, 140, 100, 140, 170, 100, 110, 150, 100, 100]
    for number, length_ms in enumerate(lengths_ms):
        for half, size in enumerate((10**8, 10**7)):
            send_ns = (length_ms - 60) * MS // 2
            made.took("all-reduce", range(2), 2 * number + half, size, (at_ms + 60) * MS + half * send_ns, send_ns)
        at_ms += length_ms
    assert call_iterations(made).times_ms == pytest.approx(lengths_ms[1:])


def test_calls_that_do_not_repeat_are_an_error():
    made = Made(2)
    for number in range(20):
        made.took("all-reduce", range(2), number, 10**6 * (number + 1), number * 100 * MS, 40 * MS)
    with pytest.raises(RecordError, match="20 calls in no sequence that repeats"):
        call_iterations(made)
