# SPDX-License-Identifier: Apache-2.0
"""`roundabout acceptance` on two guests with soft-RoCE, healthy and with faults that are planted behind its back."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.acceptance.faults import build_filters
from tests.vms.guests import FABRIC, NIC, shape_port
from tests.vms.holding import hold

if TYPE_CHECKING:
    from tests.vms.stages import Rack

TOPOLOGY = "pair"
# Chosen before any acceptance ran here. The processor that emulates a guest decides its latency. A port that carries
# 43 Gbit/s of TCP's payload carries 0.92 of what RDMA has on a link of 50 Gbit/s, so that 0.9 leaves no room.
LIMITS = "most_write_latency_us: null\nleast_bandwidth: 0.85\n"
RARE = "2000"  # of so many packets one is lost
SHORT_MTU_BYTES = 1400
Record = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A fault, or none, and what `acceptance` must find: a failure of one of these figures on one of these subjects.

    `plant` and `mend` run on a guest, or on this machine where guests' ports are.
    """

    parts: Sequence[str] = ("paths", "bandwidth")
    plant: Callable[[Rack], object] = lambda _: None
    mend: Callable[[Rack], object] = lambda _: None
    figures: frozenset[str] = field(default_factory=frozenset)


def on_last(command: str) -> Callable[[Rack], object]:
    """Run a shell's command on the last guest."""
    return lambda rack: rack.machines.call_checked(rack.guests[-1], command)


def at_port(*words: str) -> Callable[[Rack], object]:
    """Run ip or tc on the last guest's port at the switch, whose name takes the place of PORT.

    tc mounts the file system of eBPF on a folder of the rack, because the guests' /run hides that of this machine.
    """

    def run(rack: Rack) -> None:
        mounted = rack.folder / "bpf"
        mounted.mkdir(exist_ok=True)
        argv = [rack.guests[-1].tap(FABRIC) if word == "PORT" else word for word in words]
        subprocess.run(argv, check=True, env={**os.environ, "TC_BPF_MNT": str(mounted)})

    return run


def filters(program: str, *options: str) -> Callable[[Rack], object]:
    """Let a program of faults.bpf.c see what comes from the last guest."""

    def plant(rack: Rack) -> None:
        built = build_filters(rack.folder / "faults.bpf.o", *options)
        at_port("tc", "qdisc", "add", "dev", "PORT", "clsact")(rack)
        place = ["tc", "filter", "add", "dev", "PORT", "ingress", "bpf", "da", "obj", str(built)]
        at_port(*place, "sec", f"classifier/{program}")(rack)

    return plant


def unmark(rack: Rack) -> None:
    """Take ECN's marks from the switch's configuration."""
    state = json.loads(switch_file(rack).read_text())
    state["marking"] = [each for each in state["running"] if "explicit-congestion-notification" in each]
    state["running"] = [each for each in state["running"] if each not in state["marking"]]
    switch_file(rack).write_text(json.dumps(state))


def mark(rack: Rack) -> None:
    """Return what `unmark` took."""
    state = json.loads(switch_file(rack).read_text())
    state["running"] += state.pop("marking")
    switch_file(rack).write_text(json.dumps(state))


def switch_file(rack: Rack) -> Path:
    """Return the file with the fake switch's state."""
    return rack.folder / "junos/switch.json"


UNFILTER = at_port("tc", "qdisc", "del", "dev", "PORT", "clsact")
T_US = "/sys/kernel/debug/mlx5/*/cc_params/rp_time_reset"
PINGS = f"tc filter %s dev {NIC} ingress protocol ip pref 1 flower ip_proto icmp"
CASES = {
    "another T on a server": Case(
        plant=on_last(f"cp {T_US} /run/T_us; echo 300 > $(echo {T_US})"),
        mend=on_last(f"cat /run/T_us > $(echo {T_US})"),
        figures=frozenset({f"dcqcn {NIC} T_us"}),
    ),
    "an MTU of 1400 on a server": Case(
        plant=on_last(f"ip link set {NIC} mtu {SHORT_MTU_BYTES}"),
        mend=on_last(f"ip link set {NIC} mtu 1500"),
        figures=frozenset({f"link {NIC} mtu"}),
    ),
    "another DSCP behind a port": Case(
        plant=filters("remark"), mend=UNFILTER, figures=frozenset({"s0 rx_prio3_bytes"})
    ),
    "no RDMA device on a server": Case(
        plant=on_last("rdma link delete rxe0"),
        mend=on_last(f"rdma link add rxe0 type rxe netdev {NIC}; systemctl restart roundabout-settings@{NIC}"),
        figures=frozenset({"settings"}),
    ),
    "a switch that does not mark": Case(
        plant=unmark,
        mend=mark,
        figures=frozenset({"configuration"}),
    ),
    "a NIC at half its rate": Case(
        plant=lambda rack: shape_port(rack.guests[-1], 0.5),
        mend=lambda rack: shape_port(rack.guests[-1], 1.0),
        figures=frozenset({"bandwidth"}),
    ),
    "healthy": Case(("paths", "bandwidth", "links")),
    "one packet in 2000 lost": Case(
        plant=filters("lose", f"-DONE_IN={RARE}"),
        mend=UNFILTER,
        figures=frozenset({"risen"}),
    ),
    "one packet in 100 lost": Case(
        plant=filters("lose"),
        mend=UNFILTER,
        figures=frozenset({"bandwidth", "risen", "s1 ib_write_bw", "s1 ib_write_lat"}),
    ),
    "pings that get lost": Case(
        parts=("paths",),
        plant=on_last(PINGS % "add" + " action drop"),
        mend=on_last(PINGS % "del"),
        figures=frozenset({"lost"}),
    ),
    "a port that carries 1400 bytes": Case(
        parts=("paths",),
        plant=at_port("ip", "link", "set", "PORT", "mtu", str(SHORT_MTU_BYTES)),
        mend=at_port("ip", "link", "set", "PORT", "mtu", "1500"),
        figures=frozenset({"lost_whole"}),
    ),
}


def accept_each(rack: Rack) -> None:
    """Run all cases that have no result yet, and hold each result to what must be found."""
    file = rack.folder / "accepted.json"
    results: dict[str, Record] = json.loads(file.read_text()) if file.exists() else {}
    limits_of(rack).write_text(LIMITS)
    for name, case in CASES.items():
        if name in results:
            continue
        print(f"\n-- {name}", flush=True)
        with planted(rack, case):
            results[name] = accept(rack, case.parts)
        file.write_text(json.dumps(results, indent=1))
    for name, result in results.items():
        print(f"{name}: {result['verdict']} in {result['lasted_s']} s", *result["findings"], sep="\n  ")
    wrong = [name for name, case in CASES.items() if not is_right(case, results[name])]
    hold(wrong, [], "cases without the right verdict")


@contextmanager
def planted(rack: Rack, case: Case) -> Iterator[None]:
    """Plant a fault for as long as the context lasts."""
    case.plant(rack)
    try:
        yield
    finally:
        case.mend(rack)


def is_right(case: Case, result: Record) -> bool:
    """Return True if a fault was found by one of its figures, or if there is neither a fault nor a failure."""
    found = result["figures"]
    return not case.figures.isdisjoint(found) if case.figures else result["verdict"] in ("pass", "inconclusive")


def accept(rack: Rack, parts: Sequence[str]) -> Record:
    """Run `acceptance`, and return its verdict with what it found."""
    folder = rack.runs / "acceptance"
    before = set(folder.glob("*/acceptance.json"))
    options = [word for part in parts for word in ("--only", part)]
    begun = time.monotonic()
    status, said = rack.roundabout("acceptance", "--topology", TOPOLOGY, "--limits", str(limits_of(rack)), *options)
    lasted_s = round(time.monotonic() - begun)
    made = set(folder.glob("*/acceptance.json")) - before
    result: Record = {"status": status, "lasted_s": lasted_s}
    if not made:
        return {**result, "verdict": "none", "figures": [], "findings": said.splitlines()[-5:], "judged": []}
    record = json.loads(made.pop().read_text())
    judged = [each for part in record["parts"].values() for each in part]
    failed = [each for each in judged if each["verdict"] == "fail"]
    return {
        **result,
        "verdict": record["verdict"],
        "figures": sorted({each["name"] for each in failed}),
        "findings": [f"{each['of']}: {each['name']}: {each['found']}" for each in failed],
        "judged": [f"{each['of']}: {each['name']}: {each['found']}: {each['verdict']}" for each in judged],
    }


def limits_of(rack: Rack) -> Path:
    """Return the file of limits for emulated guests."""
    return rack.folder / "limits.yaml"
