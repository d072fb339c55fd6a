# SPDX-License-Identifier: Apache-2.0
"""What sampler makes of NICs' counters: RDMA devices in trees of files, drivers' statistics, reaction points.

The trees are constructed from the documented names of counters, not recorded on a NIC.
"""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from roundabout.runner.machine.process_leftovers import process_name

from .test_sampler import sample

pytestmark = [pytest.mark.lab, pytest.mark.quiet]

PROGRAMS = Path(__file__).parents[2] / "build"
PORT = {
    "port_xmit_data": 25_000,
    "port_rcv_data": 50_000,
    "port_xmit_packets": 100,
    "port_rcv_packets": 200,
    "port_xmit_wait": 7,
    "port_xmit_discards": 0,
    "link_downed": 1,
}
CONNECTX_5 = {
    "np_ecn_marked_roce_packets": 5_000_000_000,
    "np_cnp_sent": 900,
    "rp_cnp_handled": 800,
    "rp_cnp_ignored": 0,
    "out_of_sequence": 4_294_967_290,
    "packet_seq_err": 1,
    "implied_nak_seq_err": 0,
    "local_ack_timeout_err": 2,
    "duplicate_request": 3,
    "rnr_nak_retry_err": 0,
    "out_of_buffer": 4,
    "lifespan": 10,
}
CONNECTX_6_DX = {
    **CONNECTX_5,
    "roce_adp_retrans": 6,
    "roce_adp_retrans_to": 0,
    "roce_slow_restart": 2,
    "roce_slow_restart_cnps": 3,
    "roce_slow_restart_trans": 1,
    "lifespan": 0,
}
PROC = {
    "proc/net/snmp": "Tcp: InSegs OutSegs RetransSegs\nTcp: 1 2 3\n",
    "proc/net/netstat": "TcpExt: TCPLossProbes TCPTimeouts\nTcpExt: 4 5\nIpExt: InCEPkts\nIpExt: 6\n",
    "proc/stat": "cpu  1 2 3 4 5 6 7 8 9 10\n",
    "proc/net/softnet_stat": "00000001 00000002 00000003\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """sys and proc of a machine with two NICs."""
    for device, hardware in (("mlx5_0", CONNECTX_5), ("mlx5_1", CONNECTX_6_DX)):
        port = tmp_path / "sys/class/infiniband" / device / "ports/1"
        for folder, counters in (("hw_counters", hardware), ("counters", PORT)):
            (port / folder).mkdir(parents=True)
            for name, value in counters.items():
                (port / folder / name).write_text(f"{value}\n")
    for path, text in PROC.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def counters(rows: dict[str, list[dict[str, str]]]) -> dict[tuple[str, str, str], dict[str, Any]]:
    """Unit, width and all values of each counter, by device, source and name."""
    return {
        (each["device"], each["source"], each["counter"]): {
            "unit": each["unit"],
            "width_bits": int(each["width_bits"]),
            "values": [int(row[each["field"]]) if row[each["field"]] else None for row in rows[each["set"]]],
        }
        for each in rows["counter"]
    }


def test_every_counter_of_every_device_is_sampled_in_its_unit(start: Callable[..., Any], root: Path) -> None:
    found = counters(sample(start("sampler", "--sys-root", str(root), "--rdma-devices", "all"), 0.1))
    expected = {
        (f"{device}/1", source, name): value * (4 if name.endswith("_data") else 1)
        for device, hardware in (("mlx5_0", CONNECTX_5), ("mlx5_1", CONNECTX_6_DX))
        for source, values in (("rdma hw", hardware), ("rdma port", PORT))
        for name, value in values.items()
    }
    assert {key: set(each["values"]) for key, each in found.items()} == {
        key: {value} for key, value in expected.items()
    }
    data = found["mlx5_0/1", "rdma port", "port_xmit_data"]
    assert (data["unit"], data["width_bits"], data["values"][0]) == ("bytes", 64, 100_000)
    assert found["mlx5_0/1", "rdma hw", "out_of_sequence"]["width_bits"] == 32
    assert found["mlx5_1/1", "rdma hw", "lifespan"]["values"][0] == 0


def test_a_chosen_device_alone_is_sampled(start: Callable[..., Any], root: Path) -> None:
    found = counters(sample(start("sampler", "--sys-root", str(root), "--rdma-devices", "mlx5_1"), 0.1))
    assert {device for device, _, _ in found} == {"mlx5_1/1"}


def test_a_device_that_is_not_there_is_named(start: Callable[..., Any], root: Path) -> None:
    program = start("sampler", "--sys-root", str(root), "--rdma-devices", "mlx5_7")
    assert program.status() == 1
    assert '--rdma-devices: there is no "mlx5_7" here; there is: mlx5_0, mlx5_1' in program.errors()


def test_a_counter_moves_wraps_vanishes_and_comes_back(start: Callable[..., Any], root: Path) -> None:
    program = start("sampler", "--sys-root", str(root), "--rdma-devices", "mlx5_0", "--period-ms", "1")
    path = root / "sys/class/infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence"
    for text in ("5\n", "", "6\n"):
        time.sleep(0.1)
        path.write_text(text)
    values = counters(sample(program, 0.1))["mlx5_0/1", "rdma hw", "out_of_sequence"]["values"]
    changes = [value for value, before in zip(values, [object(), *values], strict=False) if value != before]
    # Writing a file anew empties it for a moment, in which the counter is gone as well.
    assert [value for value in changes if value is not None] == [4_294_967_290, 5, 6]
    assert None in changes


def test_cpu_time_and_tcp_are_read_below_the_root(start: Callable[..., Any], root: Path) -> None:
    rows = sample(start("sampler", "--sys-root", str(root), "--cpu"), 0.1)
    assert (rows["cpu"][0]["busy_ticks"], rows["cpu"][0]["softirq_ticks"]) == ("19", "7")
    assert (rows["tcp"][0]["out_segs"], rows["tcp"][0]["ce_received"]) == ("2", "6")
    assert rows["port"] == []


def test_a_drivers_statistics_are_chosen_by_pattern(start: Callable[..., Any], namespaces: Any) -> None:
    arguments = ("--interfaces", "eth0", "--ethtool", "peer_*")
    found = counters(sample(start("sampler", *arguments, within=namespaces[0]), 0.1))
    peer: dict[str, int] = json.loads(namespaces[1].run("ip -j link show eth0"))[0]
    assert set(found) == {("eth0", "ethtool", "peer_ifindex")}
    assert set(found["eth0", "ethtool", "peer_ifindex"]["values"]) == {peer["ifindex"]}


@pytest.fixture
def loaded() -> Iterator[Path]:
    """dcqcn, loaded for the test; the folder of its pins."""
    transport = [str(PROGRAMS / "bin" / "transport")]
    owner = ["--owner", process_name("test-sampler")]
    subprocess.run([*transport, "load", "dcqcn", *owner, "--objects", str(PROGRAMS / "bpf")], check=True)
    yield Path("/run/roundabout/bpf/transports")
    subprocess.run([*transport, "unload", "dcqcn", *owner], check=True)


def test_a_reaction_point_is_that_of_the_namespace(start: Callable[..., Any], namespaces: Any, loaded: Path) -> None:
    program = start("sampler", "--interfaces", "eth0", "--transports", str(loaded), within=namespaces[0])
    time.sleep(0.1)
    subprocess.run(namespaces[0].inside(str(PROGRAMS / "bin" / "transport"), "set", "dcqcn", "T_us=125"), check=True)
    found = counters(sample(program, 0.1))
    cnps, rate = found["dcqcn", "transport", "cnps"], found["dcqcn", "transport", "rate"]
    assert (cnps["values"][0], cnps["values"][-1]) == (None, 0)  # this host had no entry of its own before
    assert (cnps["unit"], cnps["width_bits"]) == ("events", 64)
    assert (rate["unit"], found["dcqcn", "transport", "stage"]["width_bits"]) == ("bytes/s", 32)
