# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with a fabric, done to a lab behind everybody's back; and what an acceptance must say of it."""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roundabout.checks.acceptance.acceptance import Part
from roundabout.runner.transports import TOOL
from roundabout.testbeds.lab import Lab
from roundabout.testbeds.lab.calibration.calibration import NEVER_MARK, Ecn
from roundabout.testbeds.lab.ecn import marking
from roundabout.testbeds.lab.network import port_queues
from roundabout.testbeds.lab.network.namespaces import run_inside
from roundabout.testbeds.lab.provider import LabProvider

Spoil = Callable[[Lab], None]
SOURCE = Path(__file__).with_name("faults.bpf.c")
FLAGS = Path(__file__).parents[2] / "cmake/bpf_flags.txt"


@dataclass(frozen=True)
class Fault:
    """`spoil` is done once the lab stands, or where it `drifts`, when a trial has set everything.

    `of` and `name` are the finding's, and `found` is in its words.
    """

    spoil: Spoil
    part: Part
    of: str
    name: str
    found: str
    drifts: bool = False


def does(node: str, *argv: str) -> Spoil:
    """Run a program in the network namespace of a host or switch."""
    return lambda lab: _run(lab, node, *argv)


def _run(lab: Lab, node: str, *argv: str) -> None:
    run_inside(lab.live_pids()[node], lambda: subprocess.run(argv, check=True, capture_output=True, text=True))


def filters(switch: str, host: str, program: str) -> Spoil:
    """Let a program of faults.bpf.c see what comes from a host; of what goes there the lab's own leaves it nothing."""

    def spoil(lab: Lab) -> None:
        built = build_filters(lab.files.root / "faults.bpf.o")
        place = ["tc", "filter", "replace", "dev", host, "ingress", "pref", "1", "handle", "1"]
        _run(lab, switch, *place, "bpf", "da", "obj", str(built), "sec", f"classifier/{program}")

    return spoil


def build_filters(built: Path, *options: str) -> Path:
    """Build faults.bpf.c."""
    found = subprocess.run(["cc", "-print-multiarch"], check=True, capture_output=True, text=True).stdout.strip()
    flags = [*FLAGS.read_text().split(), "-I", f"/usr/include/{found}", *options]
    subprocess.run(["clang", *flags, "-c", SOURCE, "-o", built], check=True)
    return built


def halves(node: str, device: str) -> Spoil:
    """Let a port send half as fast."""

    def spoil(lab: Lab) -> None:
        port = next(each for each in lab.ports if (each.switch, each.interface) == (node, device))
        rate = port_queues.port_queues(lab.layout, lab.record.calibration, lab.scale)[port].drain_bytes_per_s * 8 // 2
        change = ["tc", "class", "change", "dev", device, "parent", "1:1", "classid", "1:2"]
        _run(lab, node, *change, "htb", "rate", str(rate), "ceil", str(rate))

    return spoil


def unmarked(lab: Lab) -> None:
    """No port marks."""
    lab.set_thresholds(NEVER_MARK)


def other_thresholds(lab: Lab) -> None:
    """One port marks from Kmax on, as if it had another class's thresholds."""
    queues = port_queues.port_queues(lab.layout, lab.record.calibration, lab.scale)
    port = next(each for each in queues if (each.switch, each.towards) == ("tor0", "tor1"))
    ecn = lab.record.calibration.ecn
    marking.set_thresholds(
        lab.files, {port: queues[port]}, Ecn(kmin_bytes=ecn.kmax_bytes, kmax_bytes=2 * ecn.kmax_bytes, pmax=1)
    )


FLAP = "(sleep 0.5; ip link set s3 down; sleep 0.1; ip link set s3 up) > /dev/null 2>&1 &"  # while flows send
OTHER_T = (str(TOOL), "set", "dcqcn", "T_us=20000")
RENO = ("sysctl", "-qw", "net.ipv4.tcp_congestion_control=reno")  # the one that every namespace may choose
FAULTS = {
    "half-rate": Fault(halves("tor0", "s1"), "bandwidth", "link s1, tor0 to s1", "bandwidth", "0.", drifts=True),
    "no-marking": Fault(unmarked, "links", "trial ", "valid", "tor0's port to tor1 marks", drifts=True),
    "other-thresholds": Fault(other_thresholds, "links", "trial ", "valid", "tor0's port to tor1 marks", drifts=True),
    "wrong-class": Fault(filters("tor1", "s2", "remark"), "links", "link s2, s2 to tor1", "wrong_class", "DSCP 8"),
    "unequal-T": Fault(does("s1", *OTHER_T), "links", "trial ", "valid", "s1: transport dcqcn T_us", drifts=True),
    "other-mtu": Fault(does("s3", "ip", "link", "set", "eth0", "mtu", "1400"), "paths", "host s3", "mtu_bytes", "1400"),
    # It comes after the pings, of which it would spoil one by chance.
    "lossy-link": Fault(filters("tor1", "s3", "lose"), "links", "link s3, s3 to tor1", "resent", "", drifts=True),
    "slow-link": Fault(filters("tor0", "s1", "delay"), "paths", "link s1", "rtt_ms", ""),
    "flapping-link": Fault(
        does("tor1", "sh", "-c", FLAP), "bandwidth", "host s3, carrier_changes", "risen", "", drifts=True
    ),
    "dead-cable": Fault(does("tor1", "ip", "link", "set", "s3", "down"), "paths", "link s3", "lost", "10"),
    "other-congestion-control": Fault(
        does("s2", *RENO), "links", "trial ", "valid", "s2: sysctl net.ipv4.tcp_congestion_control", drifts=True
    ),
}


@dataclass(frozen=True)
class Spoilt(Lab):
    """A lab with a fault that comes when a trial has set everything, and comes again in the next one."""

    fault: Fault

    def switch_samplers(self) -> list[list[str]]:
        self.fault.spoil(self)
        return super().switch_samplers()


class SpoiltProvider(LabProvider):
    """Labs with a fault; without one, labs."""

    def __init__(self, fault: Fault | None) -> None:
        super().__init__()
        self.fault = fault

    def create_hosts(self, *arguments: Any) -> Any:
        lab = super().create_hosts(*arguments)
        if self.fault and self.fault.drifts:
            return Spoilt(lab.record, self.fault)
        if self.fault:
            self.fault.spoil(lab)
        return lab
