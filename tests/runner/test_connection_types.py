# SPDX-License-Identifier: Apache-2.0
"""By which way jobs' bytes go, and what is known of a connection by RDMA."""

from types import SimpleNamespace

import pytest

from roundabout.runner.hosts.clocks import ClockLog, Reading
from roundabout.runner.trial import jobs, measurement
from roundabout.runner.trial.measurement import Measurement
from roundabout.spec.trainers import MODELS
from roundabout.store import Identity, Units, build_table

pytestmark = pytest.mark.unit


def job(transport="dcqcn", trainer=MODELS["replay"]):
    return SimpleNamespace(transport=SimpleNamespace(name=transport), trainer=trainer)


@pytest.mark.parametrize(
    ("capabilities", "resolved", "way"),
    [
        ({"rdma", "own clock"}, job(), "RDMA"),
        ({"own clock"}, job(), "TCP"),
        ({"rdma"}, job("mltcp_dcqcn"), "TCP"),  # no NIC's own
        ({"rdma"}, job(trainer=SimpleNamespace(rdma_program=None, nccl=False)), "TCP"),
        ({"rdma"}, job(trainer=SimpleNamespace(rdma_program=None, nccl=True)), "RDMA"),
    ],
)
def test_a_job_goes_by_rdma_where_hosts_nics_and_its_trainer_can(capabilities, resolved, way):
    assert jobs.datapath(resolved, SimpleNamespace(capabilities=lambda: capabilities)) == way


def test_rdma_flows_have_bytes_and_no_segments():
    measured = Measurement(end_ns=2)
    measured.clock_log = ClockLog()
    for at_ns in (0, 10):
        measured.clock_log.add("s0", Reading(at_ns, at_ns, 0, 0, "during"))
    event = {"event": "flow", "flow": 0, "peer": "s1", "peer_rank": 1, "local_port": 5, "remote_port": 6}
    event |= {"bytes_acked": 7, **dict.fromkeys(measurement.TCP_ALONE.values())}
    measured.events.append((jobs.Worker("j1", 0, "s0", ()), event))
    who = Identity("run", "key", "fair", "{}", 0, 1)
    table = build_table("flows", who, measurement.flow_columns(measured), Units(1, 1, 0))
    assert table["bytes_acked"].to_pylist() == [7]
    assert {table[name].to_pylist()[0] for name in measurement.TCP_ALONE} == {None}
