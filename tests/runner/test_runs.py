# SPDX-License-Identifier: Apache-2.0
"""What runs measure, what makes a trial invalid, and what is left afterwards."""

import json
import time
from itertools import pairwise

import duckdb
import pyarrow as pa
import pytest

from roundabout.core.errors import RoundaboutError
from roundabout.plan import make_plan
from roundabout.plan.duration import OVERHEAD_S
from roundabout.runner.hosts import programs
from roundabout.runner.hosts.connections import LostHostError
from roundabout.runner.machine import machine_lease
from roundabout.runner.trial import attempt
from roundabout.runner.trial.attempt import execute_attempt
from roundabout.runner.trial.validity_checks import wrong_figures
from roundabout.spec import load_experiment
from roundabout.store import Run, schemas
from tests.fakes.testbed import SCALE, FakeSite
from tests.fakes.workplace import Workplace, experiment

pytestmark = pytest.mark.unit

VARIANTS = "alone: {one_job_at_a_time: true, iterations: 2}, fair: {}"

ABSENT = {
    *("packets", "captures", "cross_traffic", "cross_flows"),  # nothing is captured, and nothing crosses
    *("port_queues", "switch_buffers"),  # of the packet-level model alone
}


@pytest.fixture(scope="module")
def one_trial(tmp_path_factory):
    """A workplace after a run of one trial, on hosts of which one has a busy CPU, and the run. Do not change them."""
    work = Workplace(tmp_path_factory.mktemp("one-trial"))
    work.provider.fault("s0", busy=0.99)
    return work, work.start()


@pytest.fixture(scope="module")
def three_trials(tmp_path_factory):
    """A workplace after a run of three trials, one of them repeated, and the run. Do not change them."""
    work = Workplace(tmp_path_factory.mktemp("three-trials"))
    work.provider.fault("s1", retransmitted=4)
    return work, work.start(experiment(variants=VARIANTS))


def test_a_run_measures_every_trial_and_leaves_nothing(three_trials):
    work, run = three_trials
    trials = run.trials()
    assert [trial["valid"] for trial in trials] == [True] * 3, [trial["reason"] for trial in trials]
    assert sorted(trial["variant"] for trial in trials) == ["alone", "alone", "fair"]
    rows = run.table("iterations").to_pylist()
    assert len(rows) == 2 * 2 * 2 + 4 * 3
    assert {row["sent_bytes"] for row in rows} == {50_000}
    assert all(
        row["iteration_ms"] == pytest.approx((row["comm_end_ns"] - row["start_ns"]) / 1e6, abs=1) for row in rows
    )
    assert not work.has_leftovers
    assert run.manifest["plan"] == [
        {name: getattr(trial, name) for name in run.manifest["plan"][0]} for trial in work.notes.plan.trials
    ]


def test_a_dilated_run_is_stored_in_the_papers_time(work, tiny, monkeypatch):
    plain = work.start(tiny(iterations=2)).manifest["plan"]
    monkeypatch.setattr(FakeSite, "dilation", 10.0)
    work.provider.dilation = 10.0
    work.provider.fault("s0", iteration_ms=200)
    run = work.start(tiny(iterations=2))
    (trial,) = run.trials()
    assert trial["valid"], trial["reason"]
    rows = [row for row in run.table("iterations").to_pylist() if row["host"] == "s0"]
    for row in rows:
        assert 20 <= row["iteration_ms"] < 40  # of a trainer that took 200
        on_runs_clock_ms = (row["comm_end_ns"] - row["start_ns"]) / 1e6  # of which each end may be off by the bound
        assert row["iteration_ms"] == pytest.approx(on_runs_clock_ms, abs=2e-3 + 2e-6 * row["offset_bound_ns"])
        assert row["late_ms"] == pytest.approx(0.01)
        assert row["sent_bytes"] == 1000 * SCALE / 10
    assert abs(rows[0]["start_ns"] - trial["start_ns"]) <= rows[0]["offset_bound_ns"]
    starts = [event for event in logged(run) if event["event"] == "start"]
    assert [event["controller_ns"] for event in starts] == [trial["start_ns"]]
    sampled = sorted(row["controller_ns"] for row in run.table("counters").to_pylist() if row["host"] == "s0")
    assert sampled[0] < rows[0]["start_ns"]
    # Samplers sleep for 5 ms of the host's time; how long after that they run is the machine's affair.
    assert 0.5e6 <= min(after - before for before, after in pairwise(sampled)) < 5e6
    assert run.manifest["testbed"]["dilation"] == 10
    (was,), (now,) = plain, run.manifest["plan"]
    assert now["expected_s"] - OVERHEAD_S == pytest.approx(10 * (was["expected_s"] - OVERHEAD_S))


def logged(run):
    return [
        json.loads(line) for path in run.path.glob("trials/*/events.jsonl") for line in path.read_text().splitlines()
    ]


def test_every_table_has_its_schema_and_rows(one_trial):
    _, run = one_trial
    for name in schemas.TABLES.keys() - ABSENT:
        table = run.table(name)
        assert table.schema.names == [column.name for column in schemas.columns(name)]
        assert table.num_rows > 0, name
    assert set(run.table("queue")["towards"].to_pylist()) == {"tor0", "tor1"}
    assert set(run.table("counters")["host"].to_pylist()) == {"s0", "s1", "s2", "s3"}
    assert set(run.table("flows")["bytes_acked"].to_pylist()) == {3000 * 50}


def test_duckdb_reads_a_run_in_place(three_trials):
    work, run = three_trials
    rows = duckdb.sql(
        f"""
        select i.variant, i.job, count(*)
        from read_parquet('{work.runs}/**/iterations.parquet', union_by_name=true) i
        join read_parquet('{work.runs}/**/trials.parquet', union_by_name=true) t using (run, trial, attempt)
        where t.valid group by all order by all
        """
    ).fetchall()
    assert rows == [("alone", "j1", 4), ("alone", "j2", 4), ("fair", "j1", 6), ("fair", "j2", 6)]
    assert len(list(run.path.glob("rejected/*"))) == 1


def test_workers_start_at_one_instant_on_measured_clocks(one_trial):
    _, run = one_trial
    agreed = run.trials()[0]["start_ns"]
    first = [row for row in run.table("iterations").to_pylist() if row["iteration"] == 0]
    assert all(abs(row["start_ns"] - agreed) <= row["offset_bound_ns"] for row in first)
    bounds = run.table("iterations")["offset_bound_ns"].to_pylist()
    assert all(0 < bound < 20e6 for bound in bounds)


def test_progress_is_logged(work):
    work.provider.fault("s0", iteration_ms=400)
    work.start()
    assert [number for job, number in work.notes.iterations if job == "j1"] == [1, 2, 3]
    assert {name for name, _ in work.notes.links} == {"L1"}
    use = work.notes.links[-1][1]
    assert (use.line_rate_gbps, use.backlog_bytes) == (50, 0)
    assert use.gbps > 0
    assert use.marks_per_s > 0


@pytest.mark.parametrize(
    "faults",
    [
        # A host may have several faults, and each is a reason of its own.
        {
            "5 iterations of j2 were recorded, expected 6 (2 workers)": ("s1", {"missing_iterations": 1}),
            "trainers woke up 7.50 ms late": ("s1", {"late_ms": 7.5}),
            "% of the CPU over the whole trial (limit 3%)": ("s0", {"steal": 0.25, "iteration_ms": 100}),
            "% of the trial although packets waited for it (limit 1.5%)": ("s0", {"stalls": True}),
            "the network stack dropped 2 packets for want of CPU": ("s0", {"softnet_dropped": 2}),
        },
        # After these no figures are checked.
        {
            "the sampler on s1 lost 7 lines of its record": ("s1", {"lost_lines": 7}),
            "s3: sysctl net.ipv4.tcp_ecn is 0, expected 1": ("s3", {"drift": True}),
        },
        {"4 segments were sent again on a lossless fabric": ("s1", {"retransmitted": 4})},
        {"the sampler on s1 ended: sampler: the kernel refused to give counters": ("s1", {"sampler_dies": True})},
        {"peer s2 (10.0.0.3) closed the connection in iteration 1": ("s1", {"peer": True})},
    ],
)
def test_a_spoilt_trial_is_kept_and_repeated(work, faults):
    for host, fault in faults.values():
        work.provider.fault(host, **fault)
    run = work.start()
    ((_, reasons, again), (_, none, done)) = work.notes.ended
    (rejected,) = run.path.glob("rejected/*/trial.json")
    recorded = json.loads(rejected.read_text())["reason"]
    for reason in faults:
        assert any(reason in each for each in reasons), reasons
        assert reason in recorded
    assert again
    assert (none, done) == ([], False)
    (trial,) = run.trials()
    assert (trial["valid"], trial["attempt"]) == (True, 2)
    assert (rejected.parent / "events.jsonl").exists()


def test_a_worker_may_export_its_record_for_longer_than_an_iteration(work, monkeypatch):
    monkeypatch.setattr(attempt, "STALL_S", 2)
    monkeypatch.setattr(attempt, "STALL_ITERATIONS", 0)
    work.provider.fault("s0", exports_s=2.5)
    run = work.start()
    (trial,) = run.trials()
    assert (trial["valid"], trial["attempt"]) == (True, 1)
    (record,) = run.path.glob("trials/*/records/*.kineto.json.gz")
    assert record.read_bytes() == b"{}"


def test_an_export_that_does_not_end_fails_the_trial(work, monkeypatch):
    monkeypatch.setattr(attempt, "RECORDING_TIMEOUT_S", 1)
    work.provider.fault("s0", exports_s=60)
    run = work.start()
    ((_, reasons, _), *_) = work.notes.ended
    assert any("did not say what they recorded within 1 s: job j1, worker 0 on s0" in each for each in reasons), reasons
    assert run.trials()[0]["attempt"] == 2


@pytest.fixture
def impatient(monkeypatch):
    """Let a trial fail after two seconds without an event of a job."""
    monkeypatch.setattr(attempt, "STALL_S", 2)
    monkeypatch.setattr(attempt, "STALL_ITERATIONS", 0)


def test_a_job_that_hangs_fails_the_trial_while_another_iterates(work, tiny, impatient):
    for host in ("s0", "s2"):
        work.provider.fault(host, hangs=True)
    for host in ("s1", "s3"):
        work.provider.fault(host, iteration_ms=300)
    run = work.start(tiny(iterations=30))
    ((_, reasons, _), *_) = work.notes.ended
    assert reasons == ["job j1: no trainer finished an iteration for 2 s"]
    assert run.trials()[0]["attempt"] == 2
    (events,) = run.path.glob("rejected/*/events.jsonl")
    assert '"done"' not in events.read_text()  # j2 would have taken 9 s


def test_a_job_that_is_done_may_be_silent(work, tiny, impatient):
    for host in ("s1", "s3"):
        work.provider.fault(host, iteration_ms=450)
    (trial,) = work.start(tiny(iterations=6)).trials()
    assert (trial["valid"], trial["attempt"]) == (True, 1)


def test_a_busy_cpu_alone_spoils_nothing(one_trial):
    work, run = one_trial
    ((_, reasons, _),) = work.notes.ended
    assert reasons == []
    assert run.table("trials")["busy_max"].to_pylist() == pytest.approx([0.99])


def test_hosts_with_cpus_of_their_own_are_judged_by_them(work):
    work.provider.sampler = None
    work.provider.fault("s1", steal=0.2, iteration_ms=50)
    run = work.start()
    ((_, reasons, _), *_) = work.notes.ended
    assert any("of the CPU over the whole trial" in each for each in reasons), reasons
    assert set(run.table("cpu")["host"].to_pylist()) == {"s0", "s1", "s2", "s3"}


def test_drops_of_a_lossless_link_name_the_link(work):
    work.provider.fault("s0", drops=9)
    work.start()
    ((_, reasons, _), *_) = work.notes.ended
    (loss,) = [reason for reason in reasons if "dropped" in reason]  # a busy machine may have others
    assert loss.startswith("lossless link L1 dropped 9 packets towards tor")


def test_a_run_ends_before_its_first_trial_if_a_host_lacks_pytorch(work):
    trainer = "trainer: {name: ddp, python: /bin/false}, profile: ddp-lab"
    text = experiment().replace("profile: vgg19-fig1, workers: [s0, s2]", f"workers: [s0, s2], {trainer}")
    with pytest.raises(RoundaboutError, match="^s[02]: /bin/false -c: exit status 1$"):
        work.start(text)
    assert list(work.runs.glob("*/*/trials/*")) == []
    assert not work.has_leftovers


def test_a_trial_is_repeated_at_most_twice(work):
    work.provider.fault("s1", retransmitted=[4] * 3)
    run = work.start()
    assert [again for _, _, again in work.notes.ended] == [True, True, False]
    (trial,) = run.trials()
    assert (trial["valid"], trial["attempt"]) == (False, 3)
    assert run.table("iterations").num_rows == 0
    assert run.table("iterations", valid_only=False).num_rows == 12


def test_a_lost_lease_ends_the_run_before_it_keeps_or_begins_another_trial(work, monkeypatch):
    attempted = []

    def attempt_and_lose(*arguments):
        attempted.append(execute_attempt(*arguments))
        work.provider.lease_lost = True
        return attempted[-1]

    monkeypatch.setattr("roundabout.runner.trial.ssh_testbed.execute_attempt", attempt_and_lose)
    with pytest.raises(RoundaboutError, match="the lease was lost"):
        work.start()
    assert len(attempted) == 1
    with pytest.raises(RoundaboutError, match="the lease was lost"):
        work.resume()
    assert len(attempted) == 1
    assert Run.open("last", work.runs).committed() == set()
    assert work.provider.left == []


def test_a_lease_that_is_lost_during_a_trial_ends_it_at_once(work, monkeypatch):
    work.provider.fault("s0", iteration_ms=20_000)

    def lose_the_lease_while_measuring(what):
        work.provider.lease_lost |= what == "measuring"

    monkeypatch.setattr(work.notes, "phase", lose_the_lease_while_measuring)
    begun = time.monotonic()
    with pytest.raises(RoundaboutError, match="the lease was lost"):
        work.start()
    assert time.monotonic() - begun < 15  # of a minute
    assert work.provider.left == []
    assert Run.open("last", work.runs).committed() == set()


@pytest.mark.proof
@pytest.mark.parametrize("command", ["apply", "read"])
def test_a_host_that_freezes_costs_an_attempt(work, monkeypatch, command):
    monkeypatch.setattr(programs, "CALL_TIMEOUT_S", 8)
    work.provider.fault("s2", **{f"freezes_in_{command}": True})
    run = work.start()
    assert work.notes.ended[0][1] == ["lost host s2: sh took longer than 8 s"]
    assert [trial["valid"] for trial in run.trials()] == [True]
    assert work.provider.left == []


def test_a_lost_host_ends_the_trial_and_the_testbed_is_raised_anew(work, tiny):
    work.provider.fault("s2", lost=True)
    run = work.start(tiny(variants=VARIANTS))
    (first, *_) = [reasons for _, reasons, _ in work.notes.ended if reasons]
    assert first == ["lost host s2: the connection broke during a trial"]
    assert work.provider.raised == 2
    assert all(trial["valid"] for trial in run.trials())
    assert work.provider.left == []


def test_a_host_that_is_lost_while_it_is_prepared_costs_an_attempt(work, monkeypatch):
    connect = work.provider.connect

    def lost_once(site, host):
        if (work.provider.raised, host) == (2, "s1"):
            raise LostHostError("s1", "cannot connect")
        return connect(site, host)

    monkeypatch.setattr(work.provider, "connect", lost_once)
    work.provider.fault("s2", lost=True)
    run = work.start()
    lost = ["lost host s2: the connection broke during a trial", "lost host s1: cannot connect"]
    assert [reason for _, reasons, _ in work.notes.ended for reason in reasons] == lost
    assert [trial["valid"] for trial in run.trials()] == [True]
    assert work.provider.left == []


def test_trainers_that_are_never_ready_are_named(work, monkeypatch):
    monkeypatch.setattr(attempt, "READY_TIMEOUT_S", 3)
    monkeypatch.setattr(attempt, "END_TIMEOUT_S", 1.0)
    work.provider.fault("s3", never_ready=True)
    work.start()
    assert work.notes.ended[0][1] == ["trainers were not ready after 3 s: j2 on s3"]


def test_a_host_program_that_fails_ends_the_run_and_all_is_undone(work):
    work.provider.fault("s1", settings_fail=True)
    with pytest.raises(RoundaboutError, match="s1: .*net.ipv4.tcp_ecn cannot be written"):
        work.start()
    assert not work.has_leftovers


def test_a_busy_machine_names_who_has_it(work, monkeypatch):
    monkeypatch.setattr(machine_lease, "QUEUE_S", 0.0)
    with (
        machine_lease.hold("machine", "someone's run", work.state),
        pytest.raises(RoundaboutError, match="leased to someone's run"),
    ):
        work.start()
    assert work.provider.raised == 0
    assert not work.runs.exists()


def test_a_resumed_run_refuses_changes_and_says_which(work, tiny, monkeypatch):
    run = work.start()
    monkeypatch.setenv("FAKE_GENERATION", "2")
    with pytest.raises(RoundaboutError, match="cannot be resumed") as refused:
        work.resume()
    assert 'testbed.identity.generation: was "1", is "2"' in refused.value.hint
    monkeypatch.delenv("FAKE_GENERATION")
    work.write(tiny(iterations=4))
    with pytest.raises(RoundaboutError) as refused:
        work.resume()
    assert "iterations: was 3, is 4" in refused.value.hint
    assert len(run.trials()) == 1
    assert work.provider.left == []


def test_segments_sent_again_within_a_host_spoil_no_trial(one_trial):
    work, run = one_trial
    (trial,) = make_plan(load_experiment(work.write(experiment())), {}, {}).trials
    tables = {name: run.table(name) for name in ("iterations", "cross_traffic", "marks", "cpu", "queue", "flows")}
    flows = tables["flows"]
    again = _with_column(flows, "retransmitted", pa.array([1] * len(flows), pa.int64()))
    within = _with_column(again, "peer", flows["host"])
    assert wrong_figures(trial, tables | {"flows": within}) == []
    assert wrong_figures(trial, tables | {"flows": again}) == ["4 segments were sent again on a lossless fabric"]


def _with_column(table, name, values):
    return table.set_column(table.schema.get_field_index(name), name, values)
