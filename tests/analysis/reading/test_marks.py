# SPDX-License-Identifier: Apache-2.0
"""Marks, drops and pauses of a stored run: which counters are joined, and whose they are."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from analysis.reading.cells import cells_of
from analysis.reading.congestion.marks import JobMarks, marks_of_cells, per_iteration
from analysis.reading.data import filter_rows, query
from roundabout.store import Identity, Run, Units, build_table

pytestmark = pytest.mark.unit

MS = 1_000_000


def rewrite(run, name, change):
    """Replace a table of each trial by what `change` makes of it."""
    for path in run.path.glob(f"trials/*/{name}.parquet"):
        table = pq.read_table(path)
        pq.write_table(pa.Table.from_pylist(change(table.to_pylist()), schema=table.schema), path)


def remove(run, *names):
    for name in names:
        for path in run.path.glob(f"trials/*/{name}.parquet"):
            path.unlink()


def sums(table, column, *keys):
    grouped = table.group_by(list(keys)).aggregate([(column, "sum")])
    return {tuple(row[key] for key in keys): row[f"{column}_sum"] for row in grouped.to_pylist()}


def trial_of(run, variant):
    return query(run, "select min(trial) as t from trials where variant = $variant", variant=variant)["t"][0].as_py()


def test_every_mark_of_every_port_is_in_an_iteration_or_unattributed(run):
    joined = per_iteration(run)
    attributed = sums(joined.iterations, "count", "trial", "link", "towards")
    counted = query(
        run, "select trial, link, towards, max(marks) - min(marks) as gained from queue group by all order by all"
    )
    assert len(counted) == len(joined.ports) == 20
    for port in counted.to_pylist():
        place = {name: port[name] for name in ("trial", "link", "towards")}
        (row,) = filter_rows(joined.ports, **place).to_pylist()
        unattributed = row["outside"] + row["no_job"] + row["no_source"]
        assert row["gained"] == port["gained"]
        assert (attributed[tuple(place.values())] or 0) + unattributed == port["gained"]
    assert pc.sum(joined.ports["no_source"]).as_py() == pc.sum(joined.ports["no_job"]).as_py() == 0


def test_a_mark_belongs_to_the_job_that_sent_the_packet(run):
    trial = trial_of(run, "fair")
    rows = filter_rows(per_iteration(run).iterations, trial=trial)
    sent = filter_rows(run.table("marks"), trial=trial)
    for job, source in (("j1", "s0"), ("j2", "s1")):
        own = pc.sum(filter_rows(rows, job=job)["count"]).as_py()
        assert own == pytest.approx(
            pc.max(filter_rows(sent, source=source)["marks"]).as_py(), rel=0.03
        )  # the last iteration


def test_iterations_are_numbered_and_known(run):
    joined = per_iteration(run)
    rows = filter_rows(joined.iterations, trial=trial_of(run, "fair"), job="j1").sort_by("iteration")
    assert joined.counted_by == "switch ports"
    assert rows["iteration"].to_pylist() == list(range(50))
    assert rows["count"].null_count == rows["bound"].null_count <= 1  # the last sample may come before the last end
    assert pc.min(rows["count"]).as_py() > 100
    assert 0 < pc.max(rows["bound"]).as_py() < 50


def test_a_host_that_two_jobs_use_has_marks_of_no_job(short_run):
    for path in short_run.path.glob("trials/*/trial.json"):
        record = json.loads(path.read_text())
        if record["job"] is None:
            record["spec"]["jobs"]["j2"]["workers"] = ["s0", "s3"]
            path.write_text(json.dumps(record))
    joined = per_iteration(short_run)
    port = filter_rows(joined.ports, trial=trial_of(short_run, "fair")).to_pylist()[0]
    assert port["no_job"] == port["gained"] > 0  # s0 is shared, s1 has no job
    assert filter_rows(joined.iterations, trial=trial_of(short_run, "fair"))["count"].null_count == 100


def test_a_host_that_two_jobs_use_one_after_the_other_has_marks_of_each(short_run):
    """j2's iterations from the 26th on as those of a third job: what `s1` sent is one's first, then the other's."""
    before = per_iteration(short_run)
    trial = trial_of(short_run, "fair")

    def with_flow_labels(rows):
        late = [row["trial"] == trial and row["job"] == "j2" and row["iteration"] >= 25 for row in rows]
        return [
            {**row, "job": "j3", "iteration": row["iteration"] - 25} if other else row
            for row, other in zip(rows, late, strict=True)
        ]

    rewrite(short_run, "iterations", with_flow_labels)
    path = short_run.path / "trials" / trial / "trial.json"
    record = json.loads(path.read_text())
    record["spec"]["jobs"]["j3"] = record["spec"]["jobs"]["j2"]
    path.write_text(json.dumps(record))
    after = per_iteration(Run.open(short_run.path))

    def counts(joined, job):
        return filter_rows(joined.iterations, trial=trial, job=job).sort_by("iteration")["count"].to_pylist()

    (port,) = filter_rows(after.ports, trial=trial).to_pylist()
    assert port["no_job"] == port["no_source"] == 0
    assert [*counts(after, "j2"), *counts(after, "j3")] == counts(before, "j2")


def test_several_workers_of_a_host_have_its_marks_once(short_run):
    before = per_iteration(short_run)
    for path in short_run.path.glob("trials/*/trial.json"):
        record = json.loads(path.read_text())
        for job in record["spec"]["jobs"].values():
            job["workers"] = [host for host in job["workers"] for _ in range(2)]
        path.write_text(json.dumps(record))
    after = per_iteration(Run.open(short_run.path))
    assert after.iterations.equals(before.iterations)
    assert after.ports.equals(before.ports)


def test_a_source_that_no_host_is_is_unattributed(short_run):
    rewrite(
        short_run, "marks", lambda rows: [{**row, "source": row["source"].replace("s1", "10.9.9.9")} for row in rows]
    )
    port = filter_rows(per_iteration(short_run).ports, trial=trial_of(short_run, "fair")).to_pylist()[0]
    assert port["no_job"] == pytest.approx(port["gained"] / 2, abs=1)
    assert port["no_source"] == 0


def test_marks_under_no_source_are_unattributed(short_run):
    rewrite(short_run, "marks", lambda rows: [row for row in rows if row["source"] == "s0"])
    joined = per_iteration(short_run)
    (port,) = filter_rows(joined.ports, trial=trial_of(short_run, "fair")).to_pylist()
    assert port["no_source"] == pytest.approx(port["gained"] / 2, abs=1)
    assert pc.min(filter_rows(joined.iterations, trial=port["trial"])["bound"]).as_py() >= port["no_source"]


def test_an_older_run_has_marks_only_where_one_job_sends(short_run):
    remove(short_run, "marks")
    rewrite(short_run, "queue", lambda rows: [{**row, "marks": place} for place, row in enumerate(rows)])
    joined = per_iteration(short_run)
    alone, fair = trial_of(short_run, "alone"), trial_of(short_run, "fair")
    assert filter_rows(joined.iterations, trial=fair)["count"].null_count == 100
    (port,) = filter_rows(joined.ports, trial=fair).to_pylist()
    assert port["no_source"] == port["gained"] > 0
    assert filter_rows(joined.iterations, trial=alone)["count"].null_count <= 1
    (port,) = filter_rows(joined.ports, trial=alone).to_pylist()
    assert port["no_source"] == 0
    known = [set(each) for each in marks_of_cells(short_run, cells_of(short_run))]
    assert known == [{"j1", "j2"}, set(), set()]


def test_drops_have_no_source_and_are_joined_where_one_job_sends(short_run):
    rewrite(short_run, "queue", lambda rows: [{**row, "drops": 3 * place} for place, row in enumerate(rows)])
    joined = per_iteration(short_run, "drops")
    alone = filter_rows(joined.iterations, trial=trial_of(short_run, "alone"))
    assert pc.sum(alone["count"]).as_py() > 500
    assert filter_rows(joined.iterations, trial=trial_of(short_run, "unfair"))["count"].null_count == 100


def device_counters(run, counter, values):
    """A table of NIC counters for every trial: `values` maps hosts to functions of the sample's number."""
    for path in run.path.glob("trials/*/trial.json"):
        record = json.loads(path.read_text())
        identity = Identity(**{name: record[name] for name in Identity.__dataclass_fields__})
        at_ns = pq.read_table(path.with_name("queue.parquet"))["controller_ns"].to_numpy()
        count, hosts = len(at_ns), list(values)
        columns = {
            "host": np.repeat(hosts, count),
            "host_ns": np.tile(at_ns, len(hosts)),
            "controller_ns": np.tile(at_ns, len(hosts)),
            "offset_bound_ns": np.full(count * len(hosts), MS),
            **{name: np.full(count * len(hosts), value) for name, value in counter.items()},
            "value": [value(number) for value in values.values() for number in range(count)],
        }
        pq.write_table(
            build_table("device_counters", identity, columns, Units()), path.with_name("device_counters.parquet")
        )


def test_without_switches_the_nics_of_receivers_count(short_run):
    marked = {"device": "mlx5_0/1", "source": "rdma hw", "counter": "np_ecn_marked_roce_packets"}
    device_counters(
        short_run,
        {**marked, "unit": "packets", "width_bits": 64},
        {"s0": lambda n: 2**60 + 7 * n, "s2": lambda n: n, "s1": lambda n: 0, "s3": lambda n: 5},
    )
    remove(short_run, "queue", "marks")
    joined = per_iteration(short_run)
    assert joined.counted_by == "NICs"
    fair = filter_rows(joined.ports, trial=trial_of(short_run, "fair"))
    samples = filter_rows(fair, towards="s2")["gained"][0].as_py()
    gained = {row["towards"]: (row["link"], row["gained"]) for row in fair.to_pylist()}
    assert gained == {"s0": ("s0", 7 * samples), "s1": ("s1", 0), "s2": ("s2", samples), "s3": ("s3", 0)}
    cells = marks_of_cells(short_run, cells_of(short_run))
    assert {job: float(own.known[0].sum()) > 0 for job, own in cells[1].items()} == {"j1": True, "j2": False}
    assert cells[1]["j1"].bound >= 8  # a clock that may be off by a millisecond widens every edge


def test_pauses_are_reported_by_nics_only_and_by_priority(short_run):
    assert per_iteration(short_run, "pauses") is None
    paused = {"device": "eth0", "source": "ethtool", "counter": "rx_prio3_pause", "unit": "", "width_bits": 64}
    device_counters(short_run, paused, {"s1": lambda n: 2 * n})
    joined = per_iteration(short_run, "pauses")
    assert joined.counted_by == "NICs"
    assert set(joined.iterations["job"].to_pylist()) == {"j2"}
    assert set(joined.ports["counter"].to_pylist()) == {"rx_prio3_pause"}


def test_a_counter_that_was_reset_spoils_the_iterations_that_it_touches(short_run):
    counter = {"device": "mlx5_0/1", "source": "rdma hw", "counter": "np_ecn_marked_roce_packets", "unit": "packets"}
    device_counters(short_run, {**counter, "width_bits": 64}, {"s0": lambda n: 10**6 + n if n < 500 else n - 500})
    remove(short_run, "queue", "marks")
    rows = filter_rows(per_iteration(short_run).iterations, trial=trial_of(short_run, "fair"), job="j1").sort_by(
        "iteration"
    )
    known = pc.is_valid(rows["count"]).to_pylist()
    assert known[1:-1].count(False) == 1  # samples of this toy begin and end with the trial
    assert not known[500 * 10 // 364]


@pytest.mark.parametrize(("width_bits", "spoilt"), [(32, 0), (64, 1)])
def test_a_counter_that_wrapped_lost_nothing(short_run, width_bits, spoilt):
    counter = {"device": "eth0", "source": "ethtool", "counter": "rx_prio3_pause", "unit": "packets"}
    device_counters(short_run, {**counter, "width_bits": width_bits}, {"s0": lambda n: (2**32 - 5000 + 10 * n) % 2**32})
    joined = per_iteration(short_run, "pauses")
    rows = filter_rows(joined.iterations, trial=trial_of(short_run, "fair"), job="j1").sort_by("iteration")
    assert pc.is_valid(rows["count"]).to_pylist()[1:-1].count(False) == spoilt
    (port,) = filter_rows(joined.ports, trial=trial_of(short_run, "fair")).to_pylist()
    samples = filter_rows(short_run.table("queue"), trial=port["trial"]).num_rows
    assert port["gained"] == 10 * (samples - 1 - spoilt)


def test_a_counter_that_vanished_for_a_while_spoils_those_iterations(short_run):
    counter = {"device": "eth0", "source": "ethtool", "counter": "rx_prio3_pause", "unit": "packets", "width_bits": 64}
    device_counters(short_run, counter, {"s0": lambda n: None if 500 <= n < 505 else n})
    rows = filter_rows(per_iteration(short_run, "pauses").iterations, trial=trial_of(short_run, "fair"), job="j1")
    assert pc.is_valid(rows.sort_by("iteration")["count"]).to_pylist()[1:-1].count(False) == 1


def test_jobs_that_depart_are_compared_as_far_as_all_repetitions_go():
    marks = JobMarks("switches", [np.array([1.0, 2.0, np.nan, 4.0]), np.array([5.0, 6.0])], 0, None)
    assert [each.tolist() for each in marks.known] == [[1.0, 2.0], [5.0, 6.0]]
