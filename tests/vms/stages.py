# SPDX-License-Identifier: Apache-2.0
"""What is done with a rack of guests, stage by stage; each holds what it finds to what it should be."""

import io
import json
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from roundabout.core.errors import RoundaboutError
from roundabout.runner.transports import BUILT
from roundabout.store import Run
from roundabout.testbeds.rack.inventory import read_inventory
from roundabout.testbeds.rack.variables import settings_document
from tests.bare.__main__ import REPOSITORY
from tests.vms import accepting, guests, replaying
from tests.vms.guests import CONTROL, FABRIC, MTU_BYTES, NIC, Guest, Machines, write_ssh
from tests.vms.holding import hold

ROUNDABOUT = Path(sys.executable).with_name("roundabout")
TESTS = REPOSITORY / "tests"
ROCE_PORT = 4791
CONNECTION_MANAGEMENT = 0x64  # UD SEND ONLY: by which queue pairs are connected; the kernel gives some of it no ToS
WRITES, WRITE_BYTES = 200, 16384
QUIET_S = 3
JUMBO_MTU_BYTES = 9000  # more than a port of the bridge carries, as where a switch's port was left at its default
TOS = 106  # DSCP 26 and ECT(0), as the inventory's lossless class has it
STAND_INS = (
    "vms/stand_ins/instead",
    "vms/stand_ins/stand-ins.service",
    "vms/stand_ins/become_server.py",
    "vms/stand_ins/priority_counters.py",
    "vms/stand_ins/look.py",
    "settings/stand_ins/trees.py",
    "settings/stand_ins/tools.py",
)
EXPERIMENT = "two-servers"
NOT_ON_HARDWARE = (
    "DCQCN's parameters (files in place of debugfs' cc_params; nothing obeys them)",
    "PFC, priorities and DCBX (a stand-in for dcb; no frame is paused)",
    "pause frames (a stand-in for ethtool -a and -A)",
    "RDMA (soft-RoCE, by the kernel's rdma_rxe)",
    "the switch (a fake one; a bridge carries the packets)",
    "OFED, NV config, firmware, GPUs: not there at all",
)
INVENTORY = """\
# SPDX-License-Identifier: Apache-2.0
all:
  vars:
    ssh_config: {folder}/ssh_config
    line_rate_gbps: {line_rate_gbps}
    payload_rate_gbps: {payload_rate_gbps}
    emulated: {{by: "Debian guests under QEMU ({accelerator}) on a bridge", scale: {scale}, dilation: {dilation}}}
  children:
    rack:
      vars: {{driver: inbox, gpu: none, clock: chrony, mtu_bytes: {mtu_bytes}, governor: leave, dcqcn: {{T_us: 125}},
             shared_nic: {shared_nic}}}
      hosts:
{servers}
    switches:
      vars:
        system: junos
        ecn: {{cell_bytes: 80, Kmin_cells: 1000, Kmax_cells: 2000, Pmax_percent: 100, queue_cells: 20000}}
      hosts:
        tor: {{ansible_host: fake, ports: {{{ports}}}, apply_on: {{platform: qfx5120-48y, release: 21.4R3-S5.4}}}}
"""


@dataclass(frozen=True)
class Rack:
    """A folder with an inventory, and the guests that it names."""

    folder: Path
    machines: Machines

    @property
    def guests(self) -> Sequence[Guest]:
        return self.machines.guests

    @property
    def inventory(self) -> Path:
        return self.folder / "inventory"

    @property
    def found(self) -> Path:
        """Settings as they were before the first provision."""
        return self.folder / "found.json"

    def write_inventory(self, mtu_bytes: int = MTU_BYTES, *, shared_nic: bool = False) -> None:
        """The inventory, and beside it how a fake switch is spoken to."""
        server = "        {0}: {{ansible_host: {0}, nic: {1}, address: {2}/24, link: {0}}}"
        servers = "\n".join(server.format(guest.name, NIC, guest.address) for guest in self.guests)
        ports = ", ".join(f"{guest.name}: et-0/0/{guest.number}" for guest in self.guests)
        self.inventory.write_text(
            INVENTORY.format(
                folder=self.folder,
                accelerator=self.machines.accelerator,
                line_rate_gbps=guests.LINE_RATE_GBPS,
                payload_rate_gbps=guests.PAYLOAD_RATE_GBPS,
                scale=guests.SCALE,
                dilation=guests.DILATION,
                mtu_bytes=mtu_bytes,
                shared_nic=json.dumps(shared_nic),
                servers=servers,
                ports=ports,
            )
        )
        fake = [sys.executable, "-S", str(TESTS / "ansible/fake_switches/switch.py"), str(self.folder / "junos")]
        variables = self.folder / "group_vars"
        variables.mkdir(exist_ok=True)
        (variables / "switches.yml").write_text(json.dumps({"switches_ssh": fake}))

    @property
    def runs(self) -> Path:
        """Where what was measured stays, beside the image."""
        return self.folder.parent / "runs"

    def start(self, command: str, *words: str) -> "subprocess.Popen[str]":
        """One of our own commands, given the inventory."""
        measures = command in ("run", "acceptance")
        which = ["--inventory", self.inventory, "--runs", self.runs] if measures else [self.inventory]
        argv = [ROUNDABOUT, command, *which, *words]
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        return subprocess.Popen(argv, cwd=self.folder, text=True, **pipes)

    def roundabout(self, command: str, *words: str) -> tuple[int, str]:
        """The same, to its end: its exit status, and what it said, which is shown as it comes."""
        with self.start(command, *words) as process:
            said = "".join(shown(process))
        return process.returncode, said

    def must(self, command: str, *words: str) -> str:
        """The same, of a command that must not fail: what it said. Raises RoundaboutError."""
        status, said = self.roundabout(command, *words)
        hold(status, 0, f"the exit status of roundabout {command}")
        return said


def shown(process: "subprocess.Popen[str]") -> Iterator[str]:
    """The lines that a program says, which are shown, too."""
    assert process.stdout
    for line in process.stdout:
        print(line, end="", flush=True)
        yield line


def brought() -> list[Path]:
    """What guests get in /opt/stand-ins: stand-ins, and what reads settings before anything is provisioned."""
    return [*(TESTS / name for name in STAND_INS), *(REPOSITORY / "roundabout/settings").glob("settings*.py")]


def become_servers(rack: Rack) -> None:
    """Give guests soft-RoCE, and stand-ins for what only a ConnectX has."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path in brought():
            archive.add(path, path.name)
    setup = (
        "set -e; mkdir -p /opt/stand-ins /usr/local/sbin; tar -C /opt/stand-ins --no-same-owner -xf -;"
        "for tool in dcb ethtool python3; do ln -sf /opt/stand-ins/instead /usr/local/sbin/$tool; done;"
        "systemctl enable --quiet --now /opt/stand-ins/stand-ins.service"
    )
    for guest in rack.guests:
        words = ["ssh", "-F", rack.folder / "ssh_config", guest.name, setup]
        subprocess.run(words, input=packed.getvalue(), check=True)
        print(f"{guest.name}: {rack.machines.call_checked(guest, 'uname -r; rdma link').strip()}")


def be_found(rack: Rack) -> None:
    """What every setting is before the first `provision`, which `rollback` is held to."""
    rack.found.write_text(json.dumps(look(rack)))


def look(rack: Rack) -> dict[str, dict[str, Any]]:
    """What provision's settings are on each guest, by their names; null where the guest has no tool to read one yet."""
    inventory = read_inventory(rack.inventory)
    found = {}
    for guest in rack.guests:
        requested = json.dumps(settings_document(inventory, inventory.servers[guest.name]))
        words = ["ssh", "-F", rack.folder / "ssh_config", guest.name, "python3 /opt/stand-ins/look.py"]
        found[guest.name] = json.loads(
            subprocess.run(words, input=requested, capture_output=True, text=True, check=True).stdout
        )
    return found


def be_examined(rack: Rack) -> None:
    """`doctor` finds machines that answer, and says what they lack."""
    _, said = rack.roundabout("doctor", "--json")
    for guest in rack.guests:
        if f'"{guest.name} ' not in said:
            raise RoundaboutError(f"doctor says nothing of {guest.name}")


def be_provisioned(rack: Rack) -> None:
    """`site.yml` makes servers of them."""
    rack.must("provision")


def change_nothing(rack: Rack) -> None:
    """A second `site.yml` finds nothing to do."""
    changed = json.loads(rack.must("provision", "--json"))["changed"]
    hold(changed, dict.fromkeys(changed, 0), "changes of the second site.yml")


def be_well(rack: Rack) -> None:
    """`doctor` and `verify` have nothing to say."""
    rack.must("doctor")
    rack.must("verify")


def ignore_timers(rack: Rack) -> None:
    """`verify --traffic` reports that no NIC applies DCQCN's T: a negative control, as its file does nothing.

    By chance one NIC of 252 passes (dcqcn_check.py).
    """
    if len(rack.guests) < 3:
        print("left out: it needs --guests 3, two of which congest the third")
        return
    status, said = rack.roundabout("verify", "--traffic", "--json")
    hold(status, 1, "the exit status of roundabout verify --traffic")
    rows = {row["what"]: row for row in json.loads(said.splitlines()[-1])["traffic"]}
    for guest in rack.guests:
        row = rows[f"{guest.name} T"]
        found = [each["found"].rpartition(": ")[2] for each in row["wrong"]] or [row["unmeasured"] or row["found"]]
        hold(found, ["this NIC does not apply T"], f"the verdict on the NIC of {guest.name}")
    rack.must("verify")


def load_transports(rack: Rack) -> None:
    """Each guest's own kernel takes each transport that was built here, and gives it up again."""
    names = sorted(path.name.partition(".")[0] for path in BUILT.glob("*.before_6_10.bpf.o"))  # Debian 12 has 6.1
    transport = "/opt/roundabout/bin/transport"
    for guest in rack.guests:
        for name in names:
            rack.machines.call_checked(guest, f"{transport} load {name} --owner vms --objects /opt/roundabout/bpf")
            there = rack.machines.call_checked(guest, "sysctl -n net.ipv4.tcp_available_congestion_control").split()
            rack.machines.call_checked(guest, f"{transport} unload {name} --owner vms")
            hold(f"rb_{name}" in there, True, f"whether {guest.name} has rb_{name}")
        kernel = rack.machines.call_checked(guest, "uname -r").strip()
        print(f"{guest.name}: Linux {kernel} takes {', '.join(names)}")


def speak_roce(rack: Rack) -> None:
    """`ib_write_bw` between two guests; its frames, taken where they pass the switch, are RoCEv2 with our ToS."""
    client, server = rack.guests[:2]
    # -u 20: seconds before a packet is sent again, as guests may be slow.
    test = f"ib_write_bw -d rxe0 -F -u 20 -n {WRITES} -s {WRITE_BYTES} --tclass {TOS}"
    capture = rack.folder / "roce.pcap"
    with tcpdump(FABRIC, capture):
        rack.machines.call_checked(server, f"systemd-run --quiet --collect --unit ib-server {test}")
        rack.machines.call_checked(server, "until ss -Hltn | grep -q :18515; do sleep 0.2; done")
        print(rack.machines.call_checked(client, f"{test} {server.address}"))
    hold_frames(capture, (client, server), WRITES * WRITE_BYTES)


def hold_frames(capture: Path, sources: Sequence[Guest], least_bytes: int) -> None:
    """Hold RoCE's frames to the jobs' ToS, and to what they must have carried."""
    table = capture.with_suffix(".parquet")
    subprocess.run([ROUNDABOUT, "decode", capture, "--output", table], check=True)
    rows = [row for row in pq.read_table(table).to_pylist() if row["destination_port"] == ROCE_PORT]
    frames = [row for row in rows if row["bth_opcode"] != CONNECTION_MANAGEMENT]
    written_bytes = sum(row["payload_bytes"] for row in frames)
    print(f"{len(frames)} frames to UDP port {ROCE_PORT}, {written_bytes} bytes of payload")
    for source in sources:
        sent = [row for row in frames if row["source"] == source.address]
        hold({row["dscp"] << 2 | row["ecn"] for row in sent}, {TOS}, f"ToS of RoCE's frames from {source.name}")
        hold({row["bth_opcode"] is None for row in sent}, {False}, "frames without an InfiniBand opcode")
    hold(written_bytes >= least_bytes, True, "whether all that was written was seen")


def replay_by_rdma(rack: Rack) -> None:
    """A job between two guests by RDMA: its bytes, its profile, its frames' ToS, and the report of a peer's death."""
    both = rack.guests[:2]
    shell = partial(_shell, rack.folder)
    capture = rack.folder / "replay.pcap"
    with tcpdump(FABRIC, capture):
        print(replaying.play(both, shell, TOS >> 2))
    hold_frames(capture, both, len(both) * replaying.ITERATIONS * replaying.BYTES)
    print(replaying.lose_one(both, shell, TOS >> 2))


def _shell(folder: Path, guest: Guest, command: str) -> list[str]:
    return ["ssh", "-F", str(folder / "ssh_config"), guest.name, command]


def be_accepted(rack: Rack) -> None:
    """`acceptance` passes the healthy rack, and finds planted faults, each by a figure."""
    accepting.accept_each(rack)


def run_experiment(rack: Rack) -> None:
    """A file of the catalogue runs as on any testbed: all trials, a report, and stamped as what it was."""
    rack.must("run", EXPERIMENT, "--quick")
    run = Run.open("last", rack.runs)
    testbed = run.manifest["testbed"]
    hold((testbed["kind"], testbed["fidelity"]["nature"]), ("rack", "emulated"), "what the run says it was measured on")
    hold((run.path / "report.html").exists(), True, "whether there is a report")
    hold(len(run.trials()), len(run.manifest["plan"]), "trials")
    for trial in run.trials():
        print(f"{trial['variant']} {trial['job'] or ''}: {trial['reason'] or 'valid'}")


@contextmanager
def tcpdump(interface: str, file: Path) -> Iterator[None]:
    """Capture what passes an interface."""
    words = ["tcpdump", "-i", interface, "-U", "-s", "128", "-B", "16384", "-w", file]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        while "listening" not in process.stderr.readline():
            hold(process.poll(), None, "tcpdump's exit status")
        try:
            yield
            await_rest(file)
        finally:
            process.terminate()
        print("tcpdump:", " ".join(process.stderr.read().split("\n")))


def await_rest(file: Path) -> None:
    """Wait until no more is written to a file: the kernel hands packets over in blocks."""
    written_bytes = -1
    while file.stat().st_size != written_bytes:
        written_bytes = file.stat().st_size
        time.sleep(QUIET_S)


def drift(rack: Rack) -> None:
    """Another program changes a setting: `verify` names it, `provision` mends it."""
    victim = rack.guests[-1]
    rack.machines.call_checked(victim, f"ip link set {NIC} mtu 1400")
    status, said = rack.roundabout("verify")
    hold(status, 1, "the exit status of roundabout verify")
    hold(f"link {NIC} mtu" in said, True, "whether verify names what drifted")
    rack.must("provision")
    rack.must("verify")


def reboot(rack: Rack) -> None:
    """What a reboot loses, the guest brings back by itself."""
    victim = rack.guests[-1]
    rack.machines.reboot(victim)
    unit = f"roundabout-settings@{NIC}"
    rack.machines.call_checked(victim, f"while [ $(systemctl is-active {unit}) = activating ]; do sleep 1; done")
    rack.must("verify")


def lose_power(rack: Rack) -> None:
    """A guest is killed while it is being provisioned: that is said, and the next `provision` makes it good."""
    victim = rack.guests[-1]
    rack.machines.call_checked(victim, f"ip link set {NIC} mtu 1400")
    with rack.start("provision") as process:
        lines = shown(process)
        hold(any("Bring the transports" in line for line in lines), True, "whether provision came to the transports")
        rack.machines.kill(victim)
        list(lines)
    hold(process.returncode, 1, "the exit status of roundabout provision with a host that died")
    rack.machines.start([victim])
    rack.must("provision")
    rack.must("verify")


def roll_back(rack: Rack) -> None:
    """Every setting is as it was found, but for those that `rollback` names."""
    reports = json.loads(rack.must("rollback", "--json"))["reports"]
    before, after = json.loads(rack.found.read_text()), look(rack)
    for guest in rack.guests:
        skipped = {each["setting"]: each["reason"] for each in reports[guest.name].get("skipped", [])}
        for setting, was in before[guest.name].items():
            now = after[guest.name][setting]
            if now != was:
                why = "not readable before" if was is None else skipped.get(setting)
                print(f"{guest.name}: {setting}: {was}, now {now}: {why}")
                hold(why is not None, True, f"whether rollback says why {setting} of {guest.name} is not as it was")
        print(f"{guest.name}: {len(before[guest.name])} settings looked at")
        kept = rack.machines.call_checked(guest, "find /etc /var/lib/roundabout -name '*roundabout*' -type f").split()
        print(f"{guest.name}: kept: {kept}")


def cut_ssh(rack: Rack) -> None:
    """Apply an MTU that cuts SSH, by guests' only NIC. The first one undoes it by itself, and no other is changed.

    The controller's frames are as long, and the ports between drop them: TCP connects, and ssh's key exchange stops.
    """
    victim = rack.guests[0]
    write_ssh(rack.folder, rack.guests, FABRIC)
    subprocess.run(["ip", "link", "set", FABRIC, "mtu", str(JUMBO_MTU_BYTES)], check=True)
    for guest in rack.guests:
        rack.machines.call_checked(guest, f"ip link set {CONTROL} down")
    before = look(rack)
    rack.write_inventory(JUMBO_MTU_BYTES, shared_nic=True)
    with rack.start("provision") as process:
        lines = shown(process)
        hold(any("Apply the settings" in line for line in lines), True, "whether provision applied settings")
        applied = time.monotonic()
        hold(rack.machines.answers(victim), False, f"whether {victim.name} answers after the change")
        while not rack.machines.answers(victim):
            hold(process.poll(), None, f"the exit status of roundabout provision before {victim.name} answers")
        print(f"{victim.name}: SSH answers again {time.monotonic() - applied:.0f} s after the change")
        said = "".join(lines)
    hold(process.returncode, 1, "the exit status of roundabout provision that cut SSH")
    hold("the settings were undone" in said, True, "whether provision says that settings were undone")
    hold(look(rack), before, "settings after the undo")


Stage = Callable[[Rack], None]
STAGES: Mapping[str, Stage] = {
    "soft-RoCE and stand-ins": become_servers,
    "settings as found": be_found,
    "doctor, before": be_examined,
    "site.yml": be_provisioned,
    "site.yml again": change_nothing,
    "doctor and verify": be_well,
    "DCQCN's T": ignore_timers,
    "transports by each kernel": load_transports,
    "RoCE": speak_roce,
    "rdma replay": replay_by_rdma,
    "an experiment": run_experiment,
    "drift": drift,
    "a reboot": reboot,
    "a machine killed": lose_power,
    "rollback": roll_back,
    "an MTU that cuts SSH": cut_ssh,
}
ON_REQUEST: Mapping[str, Stage] = {"acceptance": be_accepted}
"""Stages that `--only` alone runs, after a "site.yml": they take 20 minutes."""


def go_on(rack: Rack, done: dict[str, int], keep: Callable[[], None], only: Sequence[str] = ()) -> None:
    """The stages that are not `done` yet (seconds by stage), in order; `keep` is called after each.

    Without `only`, all of STAGES are wanted.
    """
    wanted = {name: stage for name, stage in {**STAGES, **ON_REQUEST}.items() if name in (only or STAGES)}
    for number, (name, stage) in enumerate(wanted.items(), 1):
        if name in done:
            continue
        print(f"\n== {number} of {len(wanted)}: {name}", flush=True)
        begun = time.monotonic()
        stage(rack)
        done[name] = round(time.monotonic() - begun)
        keep()
