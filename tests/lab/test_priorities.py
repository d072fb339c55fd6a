# SPDX-License-Identifier: Apache-2.0
"""What a trial requires of ports, in a lab that stands: queues that transports are meant for, and strict priorities."""

import socket
import threading
import time
from contextlib import ExitStack, suppress

import pytest
from pyroute2 import IPRoute

from roundabout.spec import Transport, TrialSpec, load_experiment
from roundabout.testbeds.lab import Lab
from roundabout.testbeds.lab.calibration.calibration import NEVER_MARK, Ecn
from roundabout.testbeds.lab.ecn import marking
from roundabout.testbeds.lab.network import port_queues
from roundabout.testbeds.lab.network.namespaces import run_inside
from tests.lab.conftest import NOTHING, bpf_objects, bpf_objects_alive, traces, wait_until

pytestmark = [pytest.mark.lab, pytest.mark.quiet]

HIGH, LOW = 2, 1
THRESHOLD_BYTES = 50_000  # a millisecond of the link
SECONDS = 1.5


def trial(transport: str = "reno", priorities: tuple[int | None, int | None] = (None, None), **more) -> TrialSpec:
    """Two jobs of that transport, s0 with s2 and s1 with s3."""
    fair = next(cell for cell in load_experiment("unfair-vgg19").cells if cell.variant == "fair").spec
    jobs = {
        name: job.model_copy(update={"transport": Transport(name=transport), "priority": priority})
        for (name, job), priority in zip(fair.jobs.items(), priorities, strict=True)
    }
    return fair.model_copy(update={"jobs": jobs, **more})


def ports(lab: Lab) -> set[tuple[tuple[int, int], ...]]:
    """What the kernel says of ports' FIFOs: class and limit, of all ports."""
    pids = lab.pids()

    def read_backlogs(ifindex: int) -> dict[int, int]:
        with IPRoute() as netlink:
            return port_queues.read_fifos(netlink, ifindex)

    found = (run_inside(pids[port.switch], lambda port=port: read_backlogs(port.ifindex)) for port in lab.ports)
    return {tuple(sorted(each.items())) for each in found}


def thresholds(lab: Lab) -> set[tuple[int, int]]:
    return {(port.kmin_bytes, port.kmax_bytes) for port in lab.counters().values()}


def test_ports_get_the_transports_queue_for_a_trial_only(topology, lab_name):
    lab = Lab.create(topology, lab_name(), verify=False)
    built = ports(lab), thresholds(lab)
    cnps, never = (port_queues.HTB_CNPS, port_queues.CNPS_LIMIT_BYTES), NEVER_MARK.kmin_bytes
    deep = lab.record.calibration.queue_bytes.lossless

    lab.prepare(trial(queue="drop-tail"))
    assert ports(lab) == {((port_queues.HTB_DATA, 53_750), cnps)}
    assert thresholds(lab) == {(never, never)}
    assert lab.read_back(trial(queue="drop-tail")) == []

    lab.prepare(trial("dctcp", queue="step"))
    assert ports(lab) == {((port_queues.HTB_DATA, deep), cnps)}
    assert thresholds(lab) == {(30_000, 30_000)}
    assert lab.read_back(trial("dctcp", queue="step")) == []
    of_cnps = port_queues.CNPS_LIMIT_BYTES
    short = f"found queues of [{deep}, {of_cnps}] bytes, expected [53750, {of_cnps}]"
    marks = f"marks: found Kmin, Kmax, Pmax, packets 30000 30000 1 0, expected {never} {never} 1 0"
    drifted = [f"{port.switch}'s port to {port.towards}" for port in lab.ports]
    expected = [f"{port} {marks}" for port in drifted] + [f"{port}: {short}" for port in drifted]
    assert lab.read_back(trial(queue="drop-tail")) == expected

    lab.prepare(trial("dcqcn", priorities=(HIGH, LOW)))
    assert ports(lab) == {((port_queues.HTB_DATA, deep), cnps, (port_queues.HTB_FIRST + 1, deep))}

    lab.prepare(trial("dcqcn"))
    assert (ports(lab), thresholds(lab)) == built


@pytest.fixture(params=["mark_by_backlog", "mark_by_virtual_queue"])
def ranked_lab(request, topology, lab_name, monkeypatch) -> Lab:
    """A lab whose ports serve s0's packets before s1's, and mark in either queue from a millisecond on."""
    monkeypatch.setattr(marking, "FORCED", request.param)
    lab = Lab.create(topology, lab_name(), verify=False)
    spec = trial(priorities=(HIGH, LOW))
    lab.prepare(spec)
    step = Ecn(kmin_bytes=THRESHOLD_BYTES, kmax_bytes=THRESHOLD_BYTES, pmax=1)
    queues = port_queues.port_queues(lab.layout, lab.record.calibration, lab.scale, lab.dilation, spec)
    marking.set_thresholds(lab.files, queues, step, spec.queue_of_priority)
    for host in lab.hosts:
        lab_sysctl(lab, host, "tcp_ecn", 1)
    return lab


def test_a_lower_priority_gets_what_the_higher_leaves(ranked_lab):
    lab = ranked_lab
    kernels = bpf_objects(lab)
    both = sent(lab, {"s0": None, "s1": None})
    assert both["s0"][0] > 9 * both["s1"][0]
    assert both["s0"][1] > 50  # and it queues, and is marked, in its own

    half = lab.rate_on_host_bps(43) / 8 / 2
    some = sent(lab, {"s0": half, "s1": None})
    assert some["s1"][0] > 0.5 * some["s0"][0]
    assert some["s0"][0] > 0.5 * some["s1"][0]
    assert some["s1"][1] > 20  # of some 50 to 100
    assert some["s0"][1] < 0.1 * some["s1"][1]  # it finds the port full, but not of its own packets

    trunk = next(port for port in lab.ports if port.towards == "tor1")
    assert lab.counters()[trunk.ifindex].marks >= both["s0"][1] + some["s1"][1] - 5  # of all queues together
    Lab.remove(lab.name)
    assert traces(lab.name) == NOTHING
    assert wait_until(lambda: not kernels & bpf_objects_alive())


def lab_sysctl(lab: Lab, host: str, name: str, value: int) -> None:
    def write() -> None:
        with open(f"/proc/sys/net/ipv4/{name}", "w") as file:
            file.write(str(value))

    run_inside(lab.pids()[host], write)


def sent(lab: Lab, rates: dict[str, float | None]) -> dict[str, tuple[int, int]]:
    """Bytes that arrived from each sender within the same time, and marks that its receiver saw.

    Senders send all they can, or so many bytes a second.
    """
    receivers, dscps = {"s0": "s2", "s1": "s3"}, {"s0": HIGH, "s1": LOW}
    marks = {host: ce_packets(lab, receivers[host]) for host in rates}
    with ExitStack() as stack:
        stopping = threading.Event()
        flows = {host: open_flow(lab, host, receivers[host], dscps[host], rate) for host, rate in rates.items()}
        for sender, receiver in flows.values():
            stack.callback(receiver.close)
            stack.callback(sender.close)
            thread = threading.Thread(target=send, args=[sender, stopping])
            stack.callback(thread.join)
            thread.start()
        counts = dict.fromkeys(flows, 0)
        readers = [threading.Thread(target=count, args=[host, flows[host][1], counts]) for host in flows]
        for reader in readers:
            reader.start()
        time.sleep(0.3)
        before = dict(counts)
        time.sleep(SECONDS)
        after = dict(counts)
        stopping.set()
        for sender, receiver in flows.values():
            sender.shutdown(socket.SHUT_RDWR)
            receiver.shutdown(socket.SHUT_RDWR)
        for reader in readers:
            reader.join()
    return {host: (after[host] - before[host], ce_packets(lab, receivers[host]) - marks[host]) for host in rates}


def open_flow(lab: Lab, source: str, target: str, dscp: int, rate: float | None) -> tuple[socket.socket, socket.socket]:
    def connect(address: tuple[str, int]) -> socket.socket:
        end = socket.socket()
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
        end.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, dscp << 2)
        if rate is not None:
            end.setsockopt(socket.SOL_SOCKET, 47, round(rate))  # SO_MAX_PACING_RATE
        end.connect(address)
        return end

    address = lab.hosts[target].address
    with run_inside(lab.pids()[target], lambda: socket.create_server((address, 0))) as listener:
        name = listener.getsockname()
        sender = run_inside(lab.pids()[source], lambda: connect(name))
        return sender, listener.accept()[0]


def send(end: socket.socket, stopping: threading.Event) -> None:
    with suppress(OSError):
        while not stopping.is_set():
            end.send(bytes(1 << 16))


def count(host: str, end: socket.socket, counts: dict[str, int]) -> None:
    with suppress(OSError):
        while got := len(end.recv(1 << 18)):
            counts[host] += got


def ce_packets(lab: Lab, host: str) -> int:
    def read() -> list[str]:
        with open("/proc/thread-self/net/netstat") as file:
            return [line for line in file if line.startswith("IpExt:")]

    names, values = (line.split()[1:] for line in run_inside(lab.pids()[host], read))
    return int(dict(zip(names, values, strict=True))["InCEPkts"])
