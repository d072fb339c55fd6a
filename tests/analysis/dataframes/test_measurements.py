# SPDX-License-Identifier: Apache-2.0
"""Measurements of a computed run as DataFrames, held against the run's tables."""

import numpy as np
import pytest

import roundabout
from analysis.dataframes import frames
from roundabout import api
from roundabout.core.errors import UsageError
from tests.two_jobs import two_jobs

pytestmark = pytest.mark.unit

JOBS = ("j1", "j2")
LINK = {"link": "L1", "towards": "tor1"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Two jobs that share a link, packet by packet."""
    runs = tmp_path_factory.mktemp("runs")
    return roundabout.run_experiment(roundabout.build_experiment(two_jobs(3)), testbed="packets", runs=runs, quiet=True)


@pytest.fixture(scope="module")
def workers(run):
    """The stored table, with a row for each worker of a job."""
    return run.table("iterations").to_pandas()


def port_samples(run):
    """The samples of the shared link's port, in the order of time."""
    samples = run.table("queue").to_pandas().sort_values("controller_ns")
    return samples[(samples["link"] == LINK["link"]) & (samples["towards"] == LINK["towards"])]


def test_an_iteration_takes_as_long_as_its_slowest_worker(run, workers):
    found = api.iterations(run)
    slowest = workers.groupby(["job", "iteration"])["iteration_ms"].max()
    assert found.set_index(["job", "iteration"])["iteration_ms"].to_dict() == slowest.to_dict()
    assert [*found["variant"].unique(), *found["setting"].unique(), *found["repetition"].unique()] == ["base", "", 1]


def test_times_count_from_the_first_iteration_of_the_trial(run, workers):
    found = api.iterations(run)
    begin_ns = workers["start_ns"].min()
    assert found["start_ms"].min() == 0
    assert found["end_ms"].max() == pytest.approx((workers["comm_end_ns"].max() - begin_ns) / 1e6)
    assert (found["start_ms"] < found["compute_end_ms"]).all()
    assert (found["compute_end_ms"] < found["end_ms"]).all()


def test_the_bandwidth_of_a_job_adds_up_to_the_bytes_of_its_host(run):
    found = api.bandwidth(run, window_ms=5)
    sent = run.table("counters").to_pandas().groupby("host")["tx_bytes"].agg(np.ptp)
    for job, host in zip(JOBS, ("s0", "s1"), strict=True):
        rates = found[found["job"] == job]["gbps"]
        assert rates.sum() * 5e6 / 8 == pytest.approx(
            sent[host], rel=0.02
        )  # the last window ends after the last sample
        assert rates.max() <= 50 * 1.05


def test_queues_add_up_to_the_bytes_of_the_port_and_show_its_backlog(run):
    found = api.queues(run)
    own = found[(found["link"] == LINK["link"]) & (found["towards"] == LINK["towards"])]
    samples = port_samples(run)
    assert own["gbps"].sum() * 10e6 / 8 == pytest.approx(np.ptp(samples["tx_bytes"]), rel=0.02)
    assert 0 < own["backlog_kb"].max() <= samples["backlog_bytes"].max() / 1e3


def test_marks_of_jobs_are_those_of_the_switch_ports(run):
    found = api.marks(run)
    counted = run.table("queue").to_pandas().groupby(["host", "link", "towards"])["marks"].agg(np.ptp).sum()
    assert counted > 1000
    assert found["marks"].sum() == pytest.approx(counted, abs=found["bound"].sum() + 1)
    assert list(found.groupby("job")["iteration"].max()) == [2, 2]


def test_one_trial_can_be_read_alone_and_an_unknown_one_is_an_error(run):
    (trial,) = api.iterations(run)["trial"].unique()
    assert len(api.queues(run, trial=trial)) == len(api.queues(run))
    with pytest.raises(UsageError, match="trial of-none has no iterations"):
        api.bandwidth(run, trial="of-none")


def test_without_pandas_it_says_how_to_get_it(run, monkeypatch):
    monkeypatch.setattr(frames, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match="pandas is not installed"):
        api.iterations(run)
