# SPDX-License-Identifier: Apache-2.0
"""`doctor --record`: what it writes of a machine makes a stand-in of which doctor says the same. It names no person."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from roundabout.cli.tools import doctor
from roundabout.core.errors import RoundaboutError, UsageError
from roundabout.settings import settings
from roundabout.settings.settings_host import Host, SettingsError
from roundabout.testbeds.rack import provider, stub_recorder
from roundabout.testbeds.rack.examination import SCRIPT, Finding, mark_differences, parse, script_arguments
from roundabout.testbeds.rack.inventory import read_inventory
from roundabout.testbeds.rack.stub_recorder import RECORDER, mask_identifiers, recorder_request
from tests.rack.examined_hosts import NV, SHOW, add_all, add_ethtool, add_tool, furnish
from tests.running import load_program

pytestmark = pytest.mark.unit

MAC, SERIAL = "0c:42:a1:b2:c3:d4", "MT1843X12345"
CONNECTION = "0c42a1b2-c3d4-4c42-a1b2-0c42a1b2c3d4"
# Recordings of real machines: what doctor found there, it finds again in what was recorded.
RECORDINGS = sorted(Path(__file__).with_name("recordings").glob("*.json"))


TESTS = Path(__file__).parents[1]
RECORDED = load_program(TESTS / "rack/stand_ins/recorded.py")
TREES = load_program(TESTS / "settings/stand_ins/trees.py")


def examined(words: list[str], path: str) -> list[Finding]:
    done = subprocess.run(
        ["/bin/sh", "-s", "--", *words], input=SCRIPT, capture_output=True, text=True, env={"PATH": path}
    )
    assert (done.returncode, done.stderr) == (0, "")
    return list(parse(done.stdout))


@pytest.fixture
def written(inventory_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What is written of a machine made of files, on which not all is well."""
    root, tools = tmp_path / "root", tmp_path / "tools"
    furnish(root)
    add_all(tools)
    add_ethtool(root / "usr/sbin/ethtool", ("Vendor SN", f"address: {MAC}\nVendor SN"))
    for tool in ("chronyc", "dcb"):
        add_tool(root / "usr/sbin" / tool, f"echo 'address: {MAC} {SERIAL} GPU-0c42a1b2-c3d4-0c42-a1b2-0c42a1b2c3d4'")
    add_tool(tools / "nmcli", f"case $3 in device) echo {CONNECTION} ;; *) [ $5 != {CONNECTION} ] || echo 9000 ;; esac")
    add_tool(tools / "mstconfig", f"echo '{NV.format('True(1)')}'")
    add_tool(tools / "ip", f"echo '{SHOW}'; echo link/ether {MAC}")
    add_tool(tools / "python3", f'exec {sys.executable} "$@"')
    add_tool(tools / "ping", 'case "$*" in *.3) exit 1;; esac')
    (root / "etc/shadow").write_text("root:secret")
    (root / "proc/1").mkdir(parents=True)
    (root / "proc/1/comm").write_text("the-sites-own\n")
    inventory = read_inventory(inventory_file)
    own = inventory.nics["s0"]
    monkeypatch.setenv("PATH", str(tools))

    def here(_inventory: object, _server: object, _words: list[str], stdin: str, _patience_s: float) -> str:
        words = [sys.executable, "-IS", "-c", stdin, recorder_request(inventory, own, str(root))]
        return "Welcome\n" + subprocess.run(words, capture_output=True, text=True, check=True).stdout

    monkeypatch.setattr(stub_recorder, "run_over_ssh", here)
    alone = inventory.model_copy(deep=True)
    for name in list(alone.servers)[1:]:
        del alone.nics[name]
    monkeypatch.setattr(stub_recorder, "script_arguments", lambda *_: script_arguments(inventory, own))
    findings = examined(script_arguments(inventory, own, str(root)), str(tools))
    assert {"path MTU", "firmware's DCBX", "boot MTU"} == {each.name for each in findings if not each.good}
    said: dict[str, Any] = json.loads(json.dumps(stub_recorder.record_rack(alone, {"s0": findings})))
    return said


def stands(hosts: dict[str, Any], folder: Path) -> None:
    """Hold what doctor finds in the hosts' stand-ins to what it found on the hosts."""
    found = {}
    for name, host in hosts.items():
        root = folder / name
        RECORDED.build(host, root)
        found[name] = examined([str(root), *host["arguments"][1:]], str(root / "bin"))
    for name, findings in mark_differences(found).items():
        recorded = [each for each in hosts[name]["findings"] if each[0] not in ("ssh", "hca")]
        assert [list(each) for each in findings] == recorded


def test_doctor_says_of_a_recording_what_it_said_of_the_machine(written: dict[str, Any], tmp_path: Path) -> None:
    stands(written["hosts"], tmp_path / "again")
    for file in RECORDINGS:
        stands(json.loads(file.read_text())["hosts"], tmp_path / file.stem)


def settings_read(root: Path, document: dict[str, Any]) -> Any:
    try:
        return settings.read(Host(root, root), document)["found"]
    except SettingsError as error:
        return str(error).replace(str(root), "")


@pytest.mark.parametrize("name", ["connectx-5-ofed", "connectx-5-inbox", "connectx-6-dx"])
def test_settings_read_in_a_recording_what_they_read_on_the_machine(
    name: str, inventory_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    TREES.build(name, root)
    inventory_file.write_text(inventory_file.read_text().replace("ens1f0np0", "eth2"))
    inventory = read_inventory(inventory_file)
    request = recorder_request(inventory, inventory.nics["s0"], str(root))
    monkeypatch.setenv("PATH", str(root / "bin"))
    done = subprocess.run([sys.executable, "-IS", "-c", RECORDER, request], capture_output=True, text=True, check=True)
    RECORDED.build(mask_identifiers(json.loads(done.stdout)), tmp_path / "again")
    document = {kind: TREES.document(name)[kind] for kind in ("cpu", "link", "irq", "qos", "dcqcn")}
    found = settings_read(root, document)
    assert settings_read(tmp_path / "again", document) == found
    assert ("parameters do nothing on this NIC" in found) if name == "connectx-6-dx" else found["qos"]["eth2"]["pfc"]


def test_a_recording_contains_no_addresses_names_or_serials(written: dict[str, Any]) -> None:
    text = json.dumps(written)
    for secret in ("10.10.0.", "0a0a:", MAC, SERIAL, "0c42a1b2", "secret", "the-sites-own", "example.org", "Vendor SN"):
        assert secret not in text
    assert "198.18.0.1/" in text  # the same name each time: the address and the GID of it
    assert "0000:0000:0000:0000:0000:ffff:c612:0001" in text


@pytest.mark.parametrize(("found", "shown"), [
    ("OFED-5.8-1.1.2.1: firmware-version: 16.35.2000 (MT_0000000008)", None),
    ("0000:3b:00.0 mt4119_pciconf0 ens1f0np0 130944", None),
    ("inet 10.1.2.3/24 brd 10.1.2.255, again 10.1.2.3.", "inet 198.18.0.1/24 brd 198.18.0.2, again 198.18.0.1."),
    ("0C:42:A1:B2:C3:D4\n0c:42:a1:b2:c3:d5", "02:00:00:00:00:01\n02:00:00:00:00:02"),
    ("enx0c42a1b2c3d4 0x0c42a10300b2c3d4 b8599f0300ab", "000000000000000 000000000000000000 000000000000"),
    ("fe80:0000:0000:0000:0e42:a1ff:feb2:c3d4", "fe80:0000:0000:0000:0000:0000:0000:0001"),
    ("0000:0000:0000:0000:0000:0000:0000:0000", None),
], ids=["versions", "names", "addresses", "MACs", "long numbers", "GIDs", "no GID"])  # fmt: skip
def test_only_identifiers_of_machines_are_masked(found: str, shown: str | None) -> None:
    assert mask_identifiers({found: [found, 1, None]}) == {shown or found: [shown or found, 1, None]}


def test_an_invalid_answer_while_recording_is_one_message(
    inventory_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(provider, "examine_hosts", lambda inventory: {name: [] for name in inventory.nics})
    monkeypatch.setattr(stub_recorder, "run_over_ssh", lambda *_: "python3: not found")
    with pytest.raises(RoundaboutError, match="s0: cannot be recorded: found 'python3: not found', expected JSON"):
        doctor.command(inventory_file, record=tmp_path / "file")

    def lacking(*_: object) -> str:
        raise RoundaboutError("sh: 1: exec: python3: not found", "`ssh` must work")

    monkeypatch.setattr(stub_recorder, "run_over_ssh", lacking)
    with pytest.raises(RoundaboutError, match="s0: cannot be recorded: sh: 1: exec: python3: not found") as raised:
        doctor.command(inventory_file, record=tmp_path / "file")
    assert raised.value.hint == "python3, and `ssh` must work"
    with pytest.raises(UsageError, match="--record: found no inventory"):
        doctor.command(None, record=tmp_path / "file")
    monkeypatch.setattr(stub_recorder, "run_over_ssh", lambda *_: '{"files": {"/a": "10.10.0.2"}}')
    doctor.command(inventory_file, record=tmp_path / "file")
    assert "read it before you hand it on" in capsys.readouterr().out
    assert json.loads((tmp_path / "file").read_text())["hosts"]["s11"]["files"] == {"/a": "198.18.0.2"}
