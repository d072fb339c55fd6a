# SPDX-License-Identifier: Apache-2.0
"""ECN marking and counting on switch ports, by the eBPF programs that `switchport` attaches."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import TypeAdapter

from roundabout.runner.hosts.host_group import Port
from roundabout.testbeds.lab.calibration.calibration import Ecn
from roundabout.testbeds.lab.errors import LabError
from roundabout.testbeds.lab.network import paths
from roundabout.testbeds.lab.network.layout import Layout
from roundabout.testbeds.lab.network.port_queues import Queue

Program = Literal["mark_by_backlog", "mark_by_virtual_queue"]
FORCED: Program | None = None  # set by tests to select the program for older kernels


@dataclass(frozen=True)
class MarkingProgram:
    """The attached eBPF program that records ports' queues for marking, with its id in the kernel."""

    program: Program
    id: int


@dataclass(frozen=True)
class PortCounters:
    """A port's cumulative counters since the lab was built, and its thresholds.

    Packets and marks are wire segments. Bytes include Ethernet headers. `echo_ns` is the time from marks to the
    arrival of their echoes at the sender's device, of all `echoes` together. A super-packet is marked if any of the
    packets would be that its segments stand for, or as one packet if `packets_per_segment` is 0.
    """

    ifindex: int
    packets: int
    bytes: int
    ect_packets: int
    marks: int
    echoes: int
    echo_ns: int
    kmin_bytes: int
    kmax_bytes: int
    pmax: float
    packets_per_segment: int


def attach(  # noqa: PLR0913, PLR0917 - each is another thing that is attached to
    lab: paths.LabPaths, layout: Layout, queues: Mapping[Port, Queue], pids: Mapping[str, int], ecn: Ecn, lock: int
) -> MarkingProgram:
    """Load the best marking programs that the kernel supports, pin their maps, and attach them.

    They are attached to every port, and to the interface where the port's packets arrive. The caller must hold the
    lab's lock, with the descriptor `lock`. Raises LabError if the kernel refuses.
    """
    lines = [
        f"{pids[port.switch]} {pids[far.node]} {far.ifindex} {_thresholds(port, queue, ecn)}"
        for port, queue in queues.items()
        for far in (layout.far_ends[port.ifindex],)
    ]
    choice = [FORCED] if FORCED else []
    output = call_switchport(["attach", str(paths.bpf_object_path("ecn")), str(lab.pins), *choice], lines, lock)
    return TypeAdapter(MarkingProgram).validate_json(output)


def set_thresholds(
    lab: paths.LabPaths,
    queues: Mapping[Port, Queue],
    ecn: Ecn,
    queue_of: Mapping[int, int] | None = None,
    packets_per_segment: int = 0,
) -> None:
    """Change the thresholds of marking ports, and the queue of each DSCP (`queue_of`). Counters are not reset."""
    waiting = "".join(f" {dscp}:{queue}" for dscp, queue in (queue_of or {}).items())
    lines = [_thresholds(port, queue, ecn, packets_per_segment) + waiting for port, queue in queues.items()]
    call_switchport(["set", str(lab.pins)], lines)


def counters(lab: paths.LabPaths) -> dict[int, PortCounters]:
    """Return the counters of all ports, by interface index."""
    found = json.loads(call_switchport(["show", str(lab.pins)], []))
    return {port["ifindex"]: PortCounters(**port) for port in found}


def find_differences(
    lab: paths.LabPaths, queues: Mapping[Port, Queue], ecn: Ecn, packets_per_segment: int = 0
) -> list[str]:
    """Return a line for each port whose thresholds differ from `ecn`, or whose segments stand for other packets."""
    wanted = (ecn.kmin_bytes, ecn.kmax_bytes, ecn.pmax, packets_per_segment)
    found = {
        at: (each.kmin_bytes, each.kmax_bytes, each.pmax, each.packets_per_segment)
        for at, each in counters(lab).items()
    }
    return [
        f"{port.switch}'s port to {port.towards} marks: found Kmin, Kmax, Pmax, packets {_words(found[port.ifindex])}, "
        f"expected {_words(wanted)}"
        for port in queues
        if found[port.ifindex] != wanted
    ]


def _words(thresholds: tuple[float, ...]) -> str:
    return " ".join(f"{each:.10g}" for each in thresholds)


def release(lab: paths.LabPaths) -> None:
    """Unpin the counters after the nodes were stopped, and wait until the kernel has freed maps and programs.

    Raises LabError if another process still reads them.
    """
    # A lab must come down even where `make clean` took its tools: then its pins just go with their folder.
    if not lab.ports_map.exists() or not paths.is_built("switchport"):
        return
    command = [str(paths.program_path("switchport")), "release", str(lab.pins)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(
            f"lab {lab.name!r} is down, but the kernel keeps its counters: {done.stderr.strip()}",
            f"end the samplers that read them, then `roundabout lab down {lab.name}` again",
        )


def _thresholds(port: Port, queue: Queue, ecn: Ecn, packets_per_segment: int = 0) -> str:
    return (
        f"{port.ifindex} {ecn.kmin_bytes} {ecn.kmax_bytes} {ecn.pmax} {queue.limit_bytes} {queue.drain_bytes_per_s} "
        f"{packets_per_segment}"
    )


def call_switchport(arguments: list[str], lines: list[str], lock: int | None = None) -> str:
    """Run `switchport` with `lines` on its standard input, and return its output. Raises LabError if it fails."""
    command = [str(paths.program_path("switchport")), *arguments]
    done = subprocess.run(
        command,
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        check=False,
        pass_fds=[lock] if lock else [],
    )
    if done.returncode:
        raise LabError(
            f"a switch's ports could not be set up: {done.stderr.strip()}",
            "the lab needs a kernel with BTF (/sys/kernel/btf/vmlinux) and CONFIG_NET_CLS_ACT",
        )
    return done.stdout
