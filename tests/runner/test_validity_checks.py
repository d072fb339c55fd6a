# SPDX-License-Identifier: Apache-2.0
"""What of a machine's trouble makes a trial invalid, from tables made up."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from roundabout.runner.hosts.host_group import EchoTimes
from roundabout.runner.trial import validity_checks
from roundabout.runner.trial.measurement import Measurement, feedback_us
from roundabout.spec import Transport, load_experiment

pytestmark = pytest.mark.unit

END_NS = 10_000_000_000
PERIOD_NS = 10_000_000
COUNT = END_NS // PERIOD_NS + 1
RATE = 537_500.0  # bytes in a period at 43 Gbit/s, divided by 100


def cpu(steal, host="controller"):
    count = len(steal)
    at = np.arange(1, count + 1) * 1_000_000_000
    share = {"busy_share": [0.5] * count, "steal_share": steal, "softnet_dropped": [0] * count}
    return pa.table({"host": [host] * count, "controller_ns": at, "window_ms": [1000.0] * count, **share})


def port(sent, waiting, at_ns=None, towards="tor1"):
    at = np.arange(len(sent)) * PERIOD_NS if at_ns is None else at_ns
    where = {"host": ["tor0"] * len(sent), "link": ["L1"] * len(sent), "towards": [towards] * len(sent)}
    counts = {"tx_bytes": np.cumsum(sent).astype(np.int64), "backlog_bytes": np.asarray(waiting) * 4344}
    return pa.table({**where, "host_ns": at, "controller_ns": at, **counts})


def steady(standing=0.0, waiting=0.5, seed=0):
    """A port that has packets waiting through a share of all periods, and sends nothing through a share of those."""
    generator = np.random.default_rng(seed)
    has = np.arange(COUNT) < waiting * COUNT
    moves = generator.permutation(has.sum()) >= standing * has.sum()
    sent = np.where(has, RATE, generator.uniform(0, RATE, COUNT))
    sent[: has.sum()] = RATE * moves * generator.uniform(0.97, 1.03, has.sum())
    return sent, has


def measured(queue=None, steal=(0.0,) * 10):
    late = {"job": ["j1"] * 10, "iteration": range(10), "late_ms": [0.1] * 10, "iteration_ms": [300.0] * 10}
    tables = {
        "cpu": cpu(list(steal)),
        "iterations": pa.table(late),
        "queue": port(*steady()) if queue is None else queue,
    }
    return validity_checks.resource_stats(tables, 0, END_NS)


def test_a_second_that_was_stolen_is_shown_and_spoils_nothing():
    found = measured(steal=[0.0] * 9 + [0.2])
    assert found["steal_max"] == pytest.approx(0.2)
    assert found["steal_mean"] == pytest.approx(0.02)
    assert found["steal_mean"] < validity_checks.STOLEN_MAX


def test_cpu_steal_is_that_of_the_worst_host():
    quiet, robbed = cpu([0.0] * 10, "s0"), cpu([0.06] * 10, "s1")
    late = pa.table({"job": ["j1"], "iteration": [0], "late_ms": [0.0]})
    tables = {"cpu": pa.concat_tables([quiet, robbed]), "iterations": late, "queue": port(*steady())}
    assert validity_checks.resource_stats(tables, 0, END_NS)["steal_mean"] == pytest.approx(0.06)


@given(st.floats(0.0, 0.3), st.floats(0.2, 1.0), st.integers(0, 100))
def test_a_link_that_stood_still_is_known_by_what_it_did_not_send(standing, waiting, seed):
    found = measured(port(*steady(standing, waiting, seed)))["stalled_share"]
    # What is missing before it was first full, and after it was last, is not counted.
    assert found == pytest.approx(standing * waiting, abs=0.02)


def test_a_link_without_waiting_packets_may_be_as_slow_as_it_likes():
    sent, _ = steady()
    assert measured(port(sent, np.zeros(COUNT, dtype=bool)))["stalled_share"] == 0


def test_bursts_in_step_with_samples_are_not_a_stalled_link():
    """A job fills the link for a third of the time; beside it iperf does to three tenths, in bursts."""
    filled = np.arange(COUNT) % 30 < 10
    sent = RATE * np.where(filled, 1.0, 0.3)
    iperf_waits = np.random.default_rng(1).random(COUNT) < 0.4
    assert measured(port(sent, filled | iperf_waits))["stalled_share"] < 0.002


def test_a_pause_of_the_whole_machine_in_which_nobody_sampled_counts():
    at = np.arange(COUNT - 30) * PERIOD_NS
    at[200:] += 30 * PERIOD_NS
    found = measured(port([RATE] * len(at), [True] * len(at), at))["stalled_share"]
    assert found == pytest.approx(0.03, abs=0.001)


def test_the_worst_of_a_links_directions_counts():
    other = port(*steady(0.1, 1.0), towards="tor0")
    assert measured(pa.concat_tables([port(*steady()), other]))["stalled_share"] == pytest.approx(0.1, abs=0.01)


def test_an_unsampled_port_has_no_stalled_share():
    assert measured(port([], []))["stalled_share"] is None


def of_two_jobs(variant="fair", times_alone=1.5, marked=(0, 0), job=None, **changes):
    """Why a trial of two jobs through one link is invalid, as far as marks show."""
    spec = next(cell.spec for cell in load_experiment("unfair-vgg19").cells if cell.variant == variant)
    spec = spec.model_copy(update=changes)
    alone_ms = sum(phase.alone_ms or 0 for phase in spec.jobs["j1"].profile.phases)
    ran = [name for name in spec.jobs if job in (None, name)]
    rows = [(name, rank, iteration) for name in ran for rank in (0, 1) for iteration in range(5)]
    iterations = pa.table(
        {
            "job": [name for name, _, _ in rows],
            "rank": [rank for _, rank, _ in rows],
            "iteration": [iteration for _, _, iteration in rows],
            # The first worker waits for the second, which is the slower one to compute.
            "communication_ms": [times_alone * alone_ms + (200 if rank == 0 else 0) for _, rank, _ in rows],
        }
    )
    recorded = pa.table({"job": ["j1", "j2"], "delivered_ce_segments": pa.array(marked, pa.int64())})
    return validity_checks.missing_marks(
        SimpleNamespace(spec=spec, job=job), {"iterations": iterations, "flows": recorded}
    )


def test_a_slowed_dcqcn_job_without_marks_makes_the_trial_invalid():
    (found,) = of_two_jobs()
    assert found == "no packet of j1, j2 was marked, although others slowed j1, j2: do ports mark them?"


@pytest.mark.parametrize(
    "fine",
    [
        {"marked": (0, 1)},
        {"times_alone": 1.02},  # they interleaved, or waited for each other and no more
        {"job": "j1"},  # no other job was there
        {"queue": "drop-tail"},  # ports that are not to mark
        {"marked": (None, None)},  # by RDMA, of which no TCP counts marks
    ],
)
def test_without_congestion_at_a_port_there_need_be_no_mark(fine):
    assert of_two_jobs(**fine) == []


def test_jobs_that_share_only_a_host_need_no_marks():
    spec = next(cell.spec for cell in load_experiment("unfair-vgg19").cells if cell.variant == "fair")
    here = {name: job.model_copy(update={"workers": ("s0", "s2")}) for name, job in spec.jobs.items()}
    assert of_two_jobs(jobs=here) == []
    apart = {"j1": here["j1"], "j2": spec.jobs["j2"].model_copy(update={"transport": Transport(name="cubic")})}
    assert of_two_jobs(jobs=apart) == ["no packet of j1 was marked, although others slowed j1: do ports mark them?"]


def test_feedback_is_the_echo_and_what_cnps_waited_in_the_papers_time():
    recorded = Measurement(
        counters_before={"s0": {"dcqcn": {"cnps": 10, "held_us": 4000}}},
        counters_after={
            "s0": {"dcqcn": {"cnps": 30, "held_us": 20_000}},
            "s1": {"dcqcn": {"cnps": 20, "held_us": 16_000}, "dctcp": {"acks": 7}},
        },
    )
    echoed = EchoTimes(150, 30_000.0).since(EchoTimes(50, 15_000.0))
    assert feedback_us(recorded, echoed, 100.0) == pytest.approx((150 + 32_000 / 40) / 100)
    assert feedback_us(Measurement(), echoed, 1.0) == 150
    assert feedback_us(recorded, EchoTimes(), 100.0) is None
