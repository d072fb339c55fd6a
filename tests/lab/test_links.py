# SPDX-License-Identifier: Apache-2.0
"""What links do to traffic: rate, loss, marks, silence."""

import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path

import pytest
from pyroute2 import IPRoute

from roundabout.runner.tables.rows import Samples
from roundabout.testbeds.lab import Lab
from roundabout.testbeds.lab.calibration.calibration import Ecn
from roundabout.testbeds.lab.ecn import marking
from roundabout.testbeds.lab.network.namespaces import run_inside

pytestmark = [pytest.mark.lab, pytest.mark.quiet]

ECT0, CE = 2, 3
WIRE_BYTES = 1514
UDP_PAYLOAD_BYTES = 1472


@pytest.fixture(params=["mark_by_backlog", "mark_by_virtual_queue"])
def marking_lab(request, topology, lab_name, monkeypatch) -> Lab:
    """A lab that marks by one program and by the other."""
    monkeypatch.setattr(marking, "FORCED", request.param)
    lab = Lab.create(topology, lab_name(), verify=False)
    lab.set_thresholds(Ecn(kmin_bytes=20_000, kmax_bytes=20_000, pmax=1))
    return lab


@pytest.mark.quiet
def test_measured_rates_are_within_3_percent(lab):
    rates = [port.payload_rate_gbps for link in lab.record.measured for port in link.ports]
    assert len(rates) == 6
    assert rates == pytest.approx([43] * 6, rel=0.03)
    assert all(0 < link.base_rtt_us < 2000 for link in lab.record.measured)


@pytest.mark.quiet
def test_wire_rate_of_the_trunk(lab):
    """By the port's own counter, not by what arrives."""
    trunk = _trunk(lab)
    with greedy(lab, ("s0", "s2"), ("s1", "s3")):
        time.sleep(0.2)
        begin, before = time.monotonic(), lab.counters()[trunk].bytes
        time.sleep(0.5)
        after, end = lab.counters()[trunk].bytes, time.monotonic()
    assert (after - before) * 8 / (end - begin) == pytest.approx(lab.rate_on_host_bps(43) * 1514 / 1448, rel=0.03)


@pytest.mark.quiet
def test_lossless_port_drops_nothing_under_four_greedy_cubic_senders(lab):
    for host in lab.hosts:  # as trials have it: a probe for lost tails sends again what was only waiting
        _set_sysctl(lab, host, "tcp_early_retrans", 0)
    with greedy(lab, ("s0", "s2"), ("s1", "s3"), ("s0", "s3"), ("s1", "s2"), transport=b"cubic", buffer_bytes=0):
        time.sleep(2)
        deepest = max(_queue(lab, "tor0", "tor1")["backlog"], 0)
    assert deepest > 0
    for port in lab.ports:
        assert _queue(lab, port.switch, port.towards)["drop"] == 0
    for host in lab.hosts:
        assert _counter(lab, host, "Tcp", "RetransSegs") == 0


def test_idle_lab_is_silent(topology, lab_name):
    lab = Lab.create(topology, lab_name(), verify=False)
    time.sleep(1.5)
    assert {port.packets for port in lab.counters().values()} == {0}
    for host, pid in lab.pids().items():
        sent = run_inside(pid, lambda: Path("/proc/thread-self/net/dev").read_text())
        for line in sent.splitlines()[2:]:
            interface, numbers = line.split(":")
            assert set(numbers.split()) == {"0"}, f"{host} {interface}: {numbers}"


def test_marks_are_the_congestion_that_a_receiver_sees(marking_lab):
    lab = marking_lab
    for host in lab.hosts:
        _set_sysctl(lab, host, "tcp_ecn", 1)
    before = _counter(lab, "s2", "IpExt", "InCEPkts")
    with greedy(lab, ("s0", "s2"), ("s1", "s2")):
        time.sleep(0.5)
    time.sleep(0.1)
    marks = sum(port.marks for port in lab.counters().values())
    assert marks > 100
    assert _counter(lab, "s2", "IpExt", "InCEPkts") - before == marks


def test_a_mark_of_an_earlier_connection_is_not_the_next_ones(marking_lab):
    """A trial's connections have the addresses and ports of the last trial's, some of whose marks were never echoed."""
    lab = marking_lab
    for host in ("s0", "s2"):
        _set_sysctl(lab, host, "tcp_ecn", 1)
    ends = [(lab.hosts["s0"].address, 40_001), (lab.hosts["s2"].address, 40_002)]
    marks = sum(port.marks for port in lab.counters().values())
    _fill_trunk(lab)
    run_inside(lab.pids()["s0"], lambda: _send_orphans(*ends))
    _fill_trunk(lab)
    time.sleep(1)
    assert sum(port.marks for port in lab.counters().values()) > marks
    before = lab.echo_times()
    server = run_inside(lab.pids()["s2"], lambda: socket.create_server(ends[1]))
    client = run_inside(lab.pids()["s0"], lambda: socket.create_connection(ends[1], source_address=ends[0]))
    with server, client, server.accept()[0] as connection:
        _fill_trunk(lab)
        client.sendall(bytes(400_000))
        client.shutdown(socket.SHUT_WR)
        while connection.recv(1 << 16):
            pass
    seen = lab.echo_times().since(before)
    assert seen.echoes > 0
    assert seen.total_us / seen.echoes < 500_000


def _send_orphans(source, destination):
    """Send 100 segments at once of a connection that the receiver does not have, so that their marks have no echo."""
    tcp = struct.pack("!HHIIBBHHH", source[1], destination[1], 1, 0, 5 << 4, 16, 1000, 0, 0) + bytes(1000)
    addresses = socket.inet_aton(source[0]) + socket.inet_aton(destination[0])
    ip = struct.pack("!BBHHHBBH", 0x45, ECT0, 20 + len(tcp), 0, 0, 64, socket.IPPROTO_TCP, 0) + addresses
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        for _ in range(100):
            raw.sendto(ip + tcp, (destination[0], 0))


def _fill_trunk(lab):
    """Fill the trunk's queue for 0.05 s with UDP of another host, which is never marked."""
    with run_inside(lab.pids()["s1"], lambda: socket.socket(type=socket.SOCK_DGRAM)) as other:
        _send_unmarked(other, (lab.hosts["s3"].address, 9), 4000)


def test_marks_by_source_add_up_to_the_ports(marking_lab):
    lab = marking_lab
    for host in lab.hosts:
        _set_sysctl(lab, host, "tcp_ecn", 1)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    samplers = [subprocess.Popen(argv, **pipes) for argv in lab.switch_samplers()]
    with greedy(lab, ("s0", "s2"), ("s1", "s2")):
        time.sleep(0.5)
    time.sleep(0.1)
    marks: dict[int, dict[str, int]] = {port.ifindex: {} for port in lab.ports}
    for sampler in samplers:
        samples = Samples(sampler.communicate()[0].splitlines(), "a sampler").columns
        assert samples["port"]["marks"][0] == 0
        rows = samples.get("marks", {"ifindex": [], "source": [], "marks": []})
        for ifindex, source, count in zip(rows["ifindex"], rows["source"], rows["marks"], strict=True):
            marks[ifindex][source] = count  # the last stays
    ports = lab.counters()
    assert {ifindex: sum(by_source.values()) for ifindex, by_source in marks.items()} == {
        ifindex: port.marks for ifindex, port in ports.items()
    }
    assert marks[_trunk(lab)].keys() == {lab.hosts["s0"].address, lab.hosts["s1"].address}
    assert all(count > 10 for count in marks[_trunk(lab)].values())


@pytest.mark.quiet
def test_acks_that_stand_for_cnps_overtake_data_and_others_do_not(marking_lab):
    lab = marking_lab
    lasting_ms = 1500 * WIRE_BYTES * 8e3 / (lab.rate_on_host_bps(43) * 1514 / 1448)
    cnp_ms, ack_ms = (_ack_behind_data_ms(lab, 1500, ecn) for ecn in (ECT0, 0))
    assert cnp_ms < 0.3 * lasting_ms < 0.8 * lasting_ms < ack_ms


def test_packets_without_ect_are_not_marked(marking_lab):
    lab = marking_lab
    with greedy(lab, ("s0", "s2"), ("s1", "s3")):
        time.sleep(0.2)
    trunk = lab.counters()[_trunk(lab)]
    assert trunk.packets > 1000
    assert trunk.marks == 0
    assert trunk.ect_packets == 0


@pytest.mark.quiet
@pytest.mark.parametrize("threshold", [200_000, 600_000])
def test_packets_are_marked_by_the_queue_that_they_leave_behind(marking_lab, threshold):
    lab = marking_lab
    lab.set_thresholds(Ecn(kmin_bytes=threshold, kmax_bytes=threshold, pmax=1))
    seen = _burst(lab, 3000)
    assert len(seen) == 3000
    # The burst outruns the link, so the queue grows at once; when it ends, the last packets leave less and less.
    unmarked = seen[::-1].index(CE)
    # Marked by what they find, the last would be marked most surely of all. Nothing comes meanwhile, so the queue is
    # what was noted last less what drains, which HTB does in bursts.
    assert 0.3 * threshold < unmarked * WIRE_BYTES < 3 * threshold
    assert lab.counters()[_trunk(lab)].marks == seen.count(CE) > 100


def test_a_packet_alone_leaves_nothing_behind(marking_lab):
    lab = marking_lab
    lab.set_thresholds(Ecn(kmin_bytes=1, kmax_bytes=1, pmax=1))
    assert [_burst(lab, 1, at_once=1) for _ in range(20)] == [[ECT0]] * 20


def test_pmax_is_a_probability(marking_lab):
    lab = marking_lab
    lab.set_thresholds(Ecn(kmin_bytes=0, kmax_bytes=2**31, pmax=0))
    assert _burst(lab, 1000).count(CE) == 0
    # The queue grows evenly to 4.5 MB: on this slope, which reaches 0.4 at 9 MB, a tenth is marked.
    lab.set_thresholds(Ecn(kmin_bytes=0, kmax_bytes=9_000_000, pmax=0.4))
    assert 0.04 < _burst(lab, 3000).count(CE) / 3000 < 0.16
    # A super-packet of eight segments is marked if one of its packets is: 1 - (1 - p)^8, which is 0.52 on average.
    lab.set_thresholds(Ecn(kmin_bytes=0, kmax_bytes=9_000_000, pmax=0.4), packets_per_segment=1)
    assert 0.4 < _burst(lab, 3000).count(CE) / 3000 < 0.65


def test_counters_count_wire_segments_and_bytes(lab):
    trunk = _trunk(lab)
    before = lab.counters()[trunk]
    _burst(lab, 504)
    after = lab.counters()[trunk]
    assert after.packets - before.packets == 504
    assert after.bytes - before.bytes == 504 * WIRE_BYTES
    assert after.ect_packets - before.ect_packets == 504


def test_one_way_traffic_is_not_flooded(topology, lab_name):
    lab = Lab.create(topology, lab_name(), verify=False)
    _burst(lab, 80)
    used = {(port.switch, port.towards) for port in lab.ports if lab.counters()[port.ifindex].packets}
    assert used == {("tor0", "tor1"), ("tor1", "s2")}


@contextmanager
def greedy(
    lab: Lab, *pairs: tuple[str, str], transport: bytes = b"reno", buffer_bytes: int = 1 << 18
) -> Iterator[None]:
    """TCP flows that send all they can; a buffer of 0 is the kernel's to choose, and to let grow."""
    stopping = threading.Event()
    ends = [_open_flow(lab, *pair, transport, buffer_bytes) for pair in pairs]
    threads = [threading.Thread(target=_send, args=[sender, stopping]) for sender, _ in ends]
    threads += [threading.Thread(target=_receive, args=[receiver]) for _, receiver in ends]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stopping.set()
        for sender, _ in ends:
            sender.shutdown(socket.SHUT_WR)
        for thread in threads:
            thread.join()
        for end in chain(*ends):
            end.close()


def _send(end: socket.socket, stopping: threading.Event) -> None:
    with suppress(OSError):
        while not stopping.is_set():
            end.send(bytes(1 << 16))


def _receive(end: socket.socket) -> None:
    with suppress(OSError):
        while end.recv(1 << 18):
            pass


def _open_flow(lab: Lab, source: str, target: str, transport: bytes, buffer_bytes: int) -> tuple[socket.socket, ...]:
    address = lab.hosts[target].address
    with run_inside(lab.pids()[target], lambda: socket.create_server((address, 0))) as listener:
        if buffer_bytes:
            listener.setsockopt(socket.SOL_SOCKET, 33, buffer_bytes)  # SO_RCVBUFFORCE
        name = listener.getsockname()
        sender = run_inside(lab.pids()[source], lambda: _connect(name, transport))
        return sender, listener.accept()[0]


def _connect(name: tuple[str, int], transport: bytes) -> socket.socket:
    end = socket.socket()
    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, transport)
    end.connect(name)
    return end


def _ack_behind_data_ms(lab: Lab, count: int, ecn: int) -> float:
    """How long a pure ACK takes from s0 to s2 that is sent behind so many packets of data."""
    kind = (socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
    with (
        run_inside(lab.pids()["s2"], lambda: socket.socket(*kind)) as receiver,
        run_inside(lab.pids()["s0"], lambda: socket.socket(*kind)) as sender,
        run_inside(lab.pids()["s0"], lambda: socket.socket(type=socket.SOCK_DGRAM)) as data,
    ):
        address = lab.hosts["s2"].address
        receiver.settimeout(5)
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, ecn)
        _send_unmarked(data, (address, 9), count)
        begin = time.monotonic()
        timestamps = bytes((1, 1, 8, 10, *range(8)))
        sender.sendto(struct.pack("!HHIIBBHHH", 9, 9, 0, 0, 8 << 4, 0x10, 0, 0, 0) + timestamps, (address, 0))
        receiver.recv(2048)
        return (time.monotonic() - begin) * 1e3


def _send_unmarked(sender: socket.socket, target: tuple[str, int], count: int) -> None:
    """Send UDP packets without ECT faster than a link takes them."""
    sender.setsockopt(socket.SOL_SOCKET, 32, 64 << 20)  # SO_SNDBUFFORCE
    sender.setsockopt(socket.IPPROTO_UDP, 103, UDP_PAYLOAD_BYTES)  # UDP_SEGMENT
    for _ in range(count // 8):
        sender.sendto(bytes(8 * UDP_PAYLOAD_BYTES), target)


def _burst(lab: Lab, count: int, at_once: int = 8) -> list[int]:
    """Send UDP packets that can be marked from s0 to s2 as fast as we can, and return the ECN bits that arrived."""
    with (
        run_inside(lab.pids()["s2"], lambda: socket.socket(type=socket.SOCK_DGRAM)) as receiver,
        run_inside(lab.pids()["s0"], lambda: socket.socket(type=socket.SOCK_DGRAM)) as sender,
    ):
        receiver.bind((lab.hosts["s2"].address, 0))
        receiver.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
        receiver.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
        receiver.settimeout(1)
        sender.setsockopt(socket.SOL_SOCKET, 32, 64 << 20)  # SO_SNDBUFFORCE
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, ECT0)
        sender.connect(receiver.getsockname())
        # Cut apart by the kernel: one by one Python would not outrun the link.
        sender.setsockopt(socket.IPPROTO_UDP, 103, UDP_PAYLOAD_BYTES)  # UDP_SEGMENT
        for _ in range(count // at_once):
            sender.send(bytes(at_once * UDP_PAYLOAD_BYTES))
        return [_ecn(receiver) for _ in range(count)]


def _ecn(receiver: socket.socket) -> int:
    _, ancillary, _, _ = receiver.recvmsg(2048, 64)
    return next(data[0] for level, kind, data in ancillary if (level, kind) == (socket.IPPROTO_IP, socket.IP_TOS)) & 3


def _trunk(lab: Lab) -> int:
    return next(port.ifindex for port in lab.ports if (port.switch, port.towards) == ("tor0", "tor1"))


def _queue(lab: Lab, switch: str, towards: str) -> dict[str, int]:
    port = next(port for port in lab.ports if (port.switch, port.towards) == (switch, towards))

    def read_limits() -> dict[str, int]:
        with IPRoute() as netlink:
            root = next(each for each in netlink.get_qdiscs(index=port.ifindex) if each.get_attr("TCA_KIND") == "htb")
        queue = root.get_attr("TCA_STATS2").get_attr("TCA_STATS_QUEUE")
        return {"backlog": queue["backlog"], "drop": queue["drops"]}

    return run_inside(lab.pids()[switch], read_limits)


def _set_sysctl(lab: Lab, host: str, name: str, value: int) -> None:
    run_inside(lab.pids()[host], lambda: Path(f"/proc/sys/net/ipv4/{name}").write_text(str(value)))


def _counter(lab: Lab, host: str, group: str, name: str) -> int:
    file = "snmp" if group == "Tcp" else "netstat"
    text = run_inside(lab.pids()[host], lambda: Path(f"/proc/thread-self/net/{file}").read_text())
    names, values = [line.split()[1:] for line in text.splitlines() if line.startswith(f"{group}:")]
    return int(dict(zip(names, values, strict=True))[name])
