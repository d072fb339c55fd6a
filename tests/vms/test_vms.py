# SPDX-License-Identifier: Apache-2.0
"""What `make rack-in-vms` gives QEMU, and where it goes on; the rest is `make rack-in-vms` itself."""

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import nullcontext, suppress
from itertools import pairwise
from pathlib import Path
from unittest.mock import Mock

import pytest

from roundabout.checks.acceptance.limits import read_limits
from roundabout.core.errors import RoundaboutError
from roundabout.spec.loader import load_experiment
from roundabout.testbeds.rack.inventory import check_topology, read_inventory
from tests.running import load_program
from tests.vms import __main__ as vms, accepting, guests, image, stages

pytestmark = pytest.mark.unit


@pytest.fixture
def guest(tmp_path: Path) -> guests.Guest:
    (tmp_path / "key.pub").write_text("ssh-ed25519 AAAA key\n")
    (tmp_path / "host_key").write_text("secret\n")
    return guests.Guest(1, tmp_path)


def after(words: list[str], word: str) -> list[str]:
    return [value for name, value in pairwise(words) if name == word]


def test_a_guest_has_its_own_disk_addresses_and_console(guest: guests.Guest, tmp_path: Path) -> None:
    words = guest.command(image.Image(tmp_path / "image"), "tcg")
    (kernel,) = after(words, "-append")
    assert f"ip={guest.address}:::255.255.255.0::{guests.NIC}:off" in kernel.split()
    assert f"ifname={guests.NIC}:{guest.mac(guests.FABRIC)}" in kernel.split()
    assert after(words, "-drive") == [f"file={tmp_path}/s1.qcow2,if=virtio"]
    assert after(words, "-serial") == [f"file:{tmp_path}/s1.console"]
    other = guests.Guest(2, tmp_path).command(image.Image(tmp_path / "image"), "tcg")
    for option in ("-device", "-netdev", "-append", "-drive", "-serial"):
        assert set(after(words, option)).isdisjoint(after(other, option))
    assert all(len(guest.tap(bridge)) <= 15 for bridge in (guests.CONTROL, guests.FABRIC))


def test_keys_reach_a_guest_as_files_that_it_writes(guest: guests.Guest, tmp_path: Path) -> None:
    (given,) = after(guest.command(image.Image(tmp_path), "tcg"), "-smbios")
    lines = base64.b64decode(given.partition("tmpfiles.extra=")[2]).decode().splitlines()
    written = {words[1]: base64.b64decode(words[6]) for words in map(str.split, lines) if words[0] == "f+~"}
    assert written["/root/.ssh/authorized_keys"] == b"ssh-ed25519 AAAA key\n"
    assert written["/etc/ssh/ssh_host_ed25519_key"] == b"secret\n"


def test_the_image_has_what_the_roles_install() -> None:
    assert {"tcpdump", "iperf3", "chrony", "perftest", "rdma-core"} <= set(image.packages())
    words = image.bootstrap(Path("/there"), Path("/acquire"), image.SETTLE)
    (hook,) = (word for word in words if word.startswith("--customize-hook="))
    done = subprocess.run(["sh", "-n", "-c", hook.partition("=")[2]], capture_output=True, text=True)
    assert done.stderr == ""


def test_the_inventory_is_one_that_a_rack_takes(tmp_path: Path) -> None:
    rack = stages.Rack(tmp_path, guests.Machines([guests.Guest(each, tmp_path) for each in range(3)], None, "tcg"))  # type: ignore[arg-type]
    rack.write_inventory()
    inventory = read_inventory(rack.inventory)
    assert [server.address for server in inventory.servers.values()] == [f"10.10.0.{each}/24" for each in (1, 2, 3)]
    assert inventory.all.vars.lossless.tos == stages.TOS
    topology = load_experiment(stages.EXPERIMENT).cells[0].spec.topology
    check_topology(inventory, topology, "inventory")
    assert (inventory.all.vars.scale, inventory.all.vars.dilation) == (guests.SCALE, guests.DILATION)


def test_the_fake_switch_has_a_port_for_each_of_the_most_guests(tmp_path: Path) -> None:
    most = [guests.Guest(each, tmp_path) for each in range(8)]
    rack = stages.Rack(tmp_path, guests.Machines(most, None, "tcg"))  # type: ignore[arg-type]
    rack.write_inventory()
    ports = read_inventory(rack.inventory).switches["tor"].ports
    state = load_program(stages.TESTS / "ansible/fake_switches/state.py")
    assert set(ports.values()) <= set(state.FACTORY["junos"]["interfaces"])


def test_guests_can_be_looked_at_before_they_have_anything(tmp_path: Path) -> None:
    for path in stages.brought():
        shutil.copy(path, tmp_path)
    document = {"sysctl": {"net.ipv4.tcp_sack": 1}, "link": {"not-there0": {"mtu": 1500}}}
    words = [sys.executable, tmp_path / "look.py"]
    done = subprocess.run(words, input=json.dumps(document), cwd="/", env={}, capture_output=True, text=True)
    found = json.loads(done.stdout)
    assert found["sysctl net.ipv4.tcp_sack"] in (0, 1)
    assert found["link not-there0 mtu"] is None


def test_a_difference_that_rollback_does_not_explain_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rack = stages.Rack(tmp_path, guests.Machines([guests.Guest(0, tmp_path)], None, "tcg"))  # type: ignore[arg-type]
    before = {"mtu": 1500, "speed_mbps": -1, "pause_rx": None}
    rack.found.write_text(json.dumps({"s0": before}))
    given = [{"setting": "speed_mbps", "reason": "not there as the rest was found"}]
    monkeypatch.setattr(stages.Rack, "must", lambda *_: json.dumps({"reports": {"s0": {"skipped": given}}}))
    monkeypatch.setattr(guests.Machines, "call_checked", lambda *_: "")
    monkeypatch.setattr(stages, "look", lambda _: {"s0": {"mtu": 1500, "speed_mbps": 25000, "pause_rx": 0}})
    stages.roll_back(rack)
    monkeypatch.setattr(stages, "look", lambda _: {"s0": before | {"mtu": 1400}})
    with pytest.raises(RoundaboutError, match="why mtu of s0 is not as it was"):
        stages.roll_back(rack)


@pytest.mark.parametrize("found", ["24 Gbit/s with T 100 us: this NIC does not apply T", "0 Gbit/s", None])
def test_soft_roce_must_not_pass_as_a_nic_that_applies_t(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, found: str | None
) -> None:
    rack = stages.Rack(tmp_path, guests.Machines([guests.Guest(each, tmp_path) for each in range(3)], None, "tcg"))  # type: ignore[arg-type]
    row = {"wrong": [{"found": found}] if found else [], "unmeasured": "", "found": "less with a longer T"}
    said = json.dumps({"traffic": [{"what": f"{guest.name} T", **row} for guest in rack.guests]})
    monkeypatch.setattr(stages.Rack, "roundabout", lambda *_: (1, f"a notice\n{said}\n"))
    monkeypatch.setattr(stages.Rack, "must", lambda *_: "")
    if found and "does not apply T" in found:
        stages.ignore_timers(rack)
        return
    with pytest.raises(RoundaboutError, match="the verdict on the NIC of s0"):
        stages.ignore_timers(rack)


UNDONE = "the settings were undone, because the connection to the host broke"


@pytest.mark.parametrize(
    ("answers", "said", "mtu_bytes", "complaint"),
    [
        ([False, False, True], UNDONE, 1500, None),
        ([True, True], UNDONE, 1500, "whether s0 answers after the change"),
        ([False, True], "unreachable", 1500, "whether provision says that settings were undone"),
        ([False, True], UNDONE, 9000, "settings after the undo"),
    ],
)
def test_an_mtu_must_cut_ssh_and_must_be_undone(
    tmp_path: Path, answers: list[bool], said: str, mtu_bytes: int, complaint: str | None
) -> None:
    rack = stages.Rack(tmp_path, guests.Machines([guests.Guest(0, tmp_path)], None, "tcg"))  # type: ignore[arg-type]
    script = f"print('TASK [settings : Apply the settings]\\n{said}', flush=True); import time; time.sleep(1); exit(1)"
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stages, "write_ssh", lambda *_: None)
        patch.setattr(stages, "look", Mock(side_effect=[{"s0": {"mtu": 1500}}, {"s0": {"mtu": mtu_bytes}}]))
        patch.setattr(stages.subprocess, "run", lambda *_, **__: None)
        patch.setattr(guests.Machines, "call_checked", lambda *_: "")
        patch.setattr(guests.Machines, "answers", Mock(side_effect=answers))
        patch.setattr(stages.Rack, "start", lambda *_: process)
        with nullcontext() if complaint is None else pytest.raises(RoundaboutError, match=complaint):
            stages.cut_ssh(rack)


def test_ssh_reaches_guests_over_either_bridge(tmp_path: Path) -> None:
    guest = guests.Guest(1, tmp_path)
    guests.write_ssh(tmp_path, [guest])
    assert f"HostName {guest.control_address}\n" in (tmp_path / "ssh_config").read_text()
    guests.write_ssh(tmp_path, [guest], guests.FABRIC)
    assert f"HostName {guest.address}\n" in (tmp_path / "ssh_config").read_text()
    known, *_ = (tmp_path / "known_hosts").read_text().split()
    assert set(known.split(",")) == {guest.control_address, guest.address}


OUTSIDE = "import subprocess, sys; from pathlib import Path; from tests.vms.__main__ import apart\n"
OUTSIDE += "subprocess.run(apart(Path(sys.argv[1]), [sys.executable, '-c', sys.argv[2]]))"
WITHIN = "import os, subprocess, time; from pathlib import Path\n"
WITHIN += "subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
WITHIN += "Path('/var/lib/namespace').write_text(os.readlink('/proc/self/ns/net')); time.sleep(600)"


DYING_S = 60


def in_namespace(namespace: str) -> list[str]:
    """Processes there."""
    found = []
    for each in Path("/proc").glob("[0-9]*/ns/net"):
        with suppress(OSError):
            if os.readlink(each) == namespace:
                found.append(each.parts[2])
    return found


@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_nothing_outlives_whoever_called(tmp_path: Path, how: signal.Signals) -> None:
    noted = tmp_path / "namespace"
    with subprocess.Popen([sys.executable, "-c", OUTSIDE, tmp_path, WITHIN], cwd=vms.REPOSITORY) as process:
        while not noted.exists() or not noted.read_text():
            assert process.poll() is None
            time.sleep(0.05)
        assert len(in_namespace(noted.read_text())) > 1
        process.send_signal(how)
    give_up = time.monotonic() + DYING_S
    while left := in_namespace(noted.read_text()):
        assert time.monotonic() < give_up, left
        time.sleep(0.05)
    assert str(tmp_path) not in Path("/proc/self/mountinfo").read_text()


def test_a_stage_that_was_done_is_not_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    called = []

    def fail(_: object) -> None:
        called.append("second")
        raise RoundaboutError("it did not work")

    plan = {"first": lambda _: called.append("first"), "second": fail}
    monkeypatch.setattr(stages, "STAGES", plan)
    done: dict[str, int] = {}
    kept: list[str] = []
    for _ in range(2):
        with pytest.raises(RoundaboutError):
            stages.go_on(None, done, lambda: kept.append(json.dumps(done)))  # type: ignore[arg-type]
    assert called == ["first", "second", "second"]
    assert kept == ['{"first": 0}']


def test_only_the_stages_that_are_wanted_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    plan = {name: lambda _, name=name: called.append(name) for name in ("first", "second", "third")}
    monkeypatch.setattr(stages, "STAGES", plan)
    monkeypatch.setattr(stages, "ON_REQUEST", {"fourth": lambda _: called.append("fourth")})
    stages.go_on(None, {"third": 1}, lambda: None, ["fourth", "second", "third"])  # type: ignore[arg-type]
    assert called == ["second", "fourth"]
    stages.go_on(None, {}, lambda: None)  # type: ignore[arg-type]
    assert called == ["second", "fourth", "first", "second", "third"]


def test_a_fault_is_found_by_its_figures_and_a_healthy_rack_by_none(tmp_path: Path) -> None:
    (tmp_path / "limits.yaml").write_text(accepting.LIMITS)
    assert read_limits(tmp_path / "limits.yaml").most_write_latency_us is None
    lost, healthy = accepting.CASES["pings that get lost"], accepting.CASES["healthy"]
    assert accepting.is_right(lost, {"figures": ["lost"], "verdict": "fail"})
    assert not accepting.is_right(lost, {"figures": ["bandwidth"], "verdict": "fail"})
    judged = {word: accepting.is_right(healthy, {"figures": [], "verdict": word}) for word in ("pass", "fail", "none")}
    assert judged == {"pass": True, "fail": False, "none": False}


def test_guests_end_with_whoever_started_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, guest: guests.Guest
) -> None:
    sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
    monkeypatch.setattr(guests.Guest, "command", lambda *_: sleeper)
    monkeypatch.setattr(guests, "END_S", 0)
    guest.overlay.touch()
    machines = guests.Machines([guest], image.Image(tmp_path), "tcg")
    monkeypatch.setattr(machines, "wait_for", lambda _: None)
    monkeypatch.setattr(machines, "call", lambda *_, **__: None)
    machines.start([guest])
    process = machines.running["s1"]
    machines.end()
    assert process.returncode == -9
    assert machines.running == {}


def test_an_invalid_number_of_guests_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        vms.main(["--guests", "1"])
    assert "--guests" in capsys.readouterr().err
