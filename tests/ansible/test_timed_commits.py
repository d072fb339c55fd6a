# SPDX-License-Identifier: Apache-2.0
"""Switches with a timed commit of their own: Cumulus Linux with NVUE, and Arista EOS.

The fake ones are made of public samples: fake_switches/nvue.py and fake_switches/eos.py name them.
"""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from ansible.plugins.filter.core import FilterModule
from jinja2 import Environment, FileSystemLoader

from tests.ansible.switches import FAKE, TIMED, Switches, facts, golden_text

pytestmark = pytest.mark.unit

TEMPLATES = Path(__file__).parents[2] / "ansible/roles/switches/templates"
REMEDY = "remove it, or `system: unmanaged`"
LATER_EOS = "4.33.1F-39879738.4331F"  # names the session whose timer runs, instead of its state


class Switch:
    """A fake switch, and the golden texts that are sent to it."""

    def __init__(self, folder: Path, **changed: Any) -> None:
        self.folder = folder
        self.wait(0)
        self.become(**changed)
        self.found = self.state["running"]

    def say(self, *actions: str) -> str:
        """Return the answers to the actions, one conversation each."""
        return "".join(self.send(golden_text(self.folder.name, action)) for action in actions)

    def send(self, text: str) -> str:
        return subprocess.run([*FAKE, str(self.folder)], input=text, text=True, capture_output=True).stdout

    def wait(self, minutes: int) -> None:
        subprocess.run([*FAKE, str(self.folder), "--minutes", str(minutes)], check=True)

    @property
    def state(self) -> dict[str, Any]:
        state: dict[str, Any] = json.loads((self.folder / "switch.json").read_text())
        return state

    def become(self, **changed: Any) -> None:
        (self.folder / "switch.json").write_text(json.dumps(self.state | changed))


class Plan(NamedTuple):
    """What the plan of Cumulus writes: a refusal, or the differences, the change and the undo."""

    refusal: str
    differs: list[str]
    change: list[str]
    undo: list[str]


LINK = {"mtu": 9216, "speed": "50G", "fec": "auto", "auto-negotiate": "on"}


def plan(folder: Path, configuration: Any, link: Any = LINK) -> Plan:
    """Run the plan that Cumulus gets in its golden texts, on answers of `nv`."""
    program = re.search(r"/plan.py\" <<'END'\n(.*?)\nEND\n", golden_text("cumulus", "compare"), re.DOTALL)
    assert program
    for name, answer in {"found": configuration, "swp1": link, "swp2": link}.items():
        (folder / name).write_text(json.dumps(answer))
    done = subprocess.run([sys.executable, "-S", "-c", program[1], str(folder)], capture_output=True, text=True)
    assert done.stderr == ""
    if done.returncode:
        return Plan(done.stdout.strip(), [], [], [])
    return Plan("", *((folder / name).read_text().splitlines() for name in ("differs", "change.sh", "undo.sh")))


def carried_out(tree: dict[str, Any], commands: list[str]) -> dict[str, Any]:
    """Return the configuration after `nv set` and `nv unset`, whose words are paths, and a value at the end."""
    tree = json.loads(json.dumps(tree))
    for verb, *words in (shlex.split(command.removesuffix(" || exit 1"))[1:] for command in commands):
        block = tree
        *path, last = words if verb == "unset" else words[:-1]
        for word in path:
            block = block.setdefault(word, {})
        if verb == "unset":
            del block[last]
        else:
            block[last] = int(words[-1]) if words[-1].isdigit() else words[-1]
    return tree


def class_3(**fields: Any) -> dict[str, Any]:
    return {"congestion-control": {"default-global": {"traffic-class": {"0": {"ecn": "enable"}, "3": fields}}}}


MARKS = {"min-threshold": 80000, "max-threshold": 160000, "probability": 100}
CUMULUS = {
    "without RoCE": class_3(),
    "lossy": {"roce": {"mode": "lossy", "enable": "on"}, **class_3()},
    "with a threshold": class_3(ecn="enable", **{"min-threshold": 1000}),
    "as wanted but for one": {"roce": {"mode": "lossless"}, **class_3(**MARKS | {"max-threshold": 150000})},
}


@pytest.mark.parametrize("blocks", CUMULUS.values(), ids=CUMULUS)
def test_the_undo_of_cumulus_brings_back_what_was_found(tmp_path: Path, blocks: dict[str, Any]) -> None:
    found = {"system": {"hostname": "tor"}, "qos": blocks}
    first = plan(tmp_path, [{"header": {}}, {"set": found}])
    changed = carried_out(found, first.change)
    assert changed["qos"]["roce"]["mode"] == "lossless"
    assert changed["qos"]["congestion-control"]["default-global"]["traffic-class"]["3"].items() >= MARKS.items()
    assert carried_out(changed, first.undo) == found
    assert first.differs
    assert plan(tmp_path, [{"header": {}}, {"set": changed}]).differs == []


REFUSED = [
    ({"mapping": {"default-global": {"trust": "l3"}}}, {}, "qos mapping default-global: found the site's own"),
    ({"roce": {"enable": "off"}}, {}, "qos roce enable: found the site's own, expected none"),
    ({"pfc": {"default-global": {}, "site": {}}}, {"swp2-4": {"qos": {"pfc": {"profile": "site"}}}},
     "interface swp2-4 qos pfc: found the site's own, expected none, as it overrides `qos roce`: nv unset interface"),
    (class_3(red="enable"), {}, "qos congestion-control default-global traffic-class 3 red: found the site's own"),
]  # fmt: skip


@pytest.mark.parametrize(("blocks", "interfaces", "message"), REFUSED)
def test_settings_that_override_roce_are_refused(
    tmp_path: Path, blocks: dict[str, Any], interfaces: dict[str, Any], message: str
) -> None:
    refusal = plan(tmp_path, [{"set": {"qos": blocks, "interface": interfaces}}]).refusal
    assert refusal.startswith(f"failed: {message}")


def test_answers_of_another_form_are_refused(tmp_path: Path) -> None:
    assert "nv config show -o json: found {}, expected a list as of Cumulus Linux 5" in plan(tmp_path, {}).refusal
    assert "nv show interface swp1 link -o json: found [], expected a dict" in plan(tmp_path, [], link=[]).refusal


def test_cumulus_is_changed_confirmed_and_undone(tmp_path: Path) -> None:
    cumulus = Switch(tmp_path / "cumulus")
    output = cumulus.say("apply", "pending", "confirm", "pending")
    assert "failed" not in output
    assert output.count("rollback pending") == 1
    changed = cumulus.state["running"]
    assert cumulus.state["saved"] == changed != cumulus.found
    pfc = {"pfc": {"default-global": {"cable-length": 50}}}
    cumulus.become(running=changed | {"qos": changed["qos"] | pfc})  # what the site sets later stays
    assert "differs from what" in cumulus.say("rollback")
    assert cumulus.state["running"] == cumulus.found | {"qos": cumulus.found["qos"] | pfc}
    assert cumulus.state["running"] == cumulus.state["saved"]
    assert not list(cumulus.folder.glob(".roundabout*"))


def test_cumulus_undoes_what_has_no_timer_or_is_refused(tmp_path: Path) -> None:
    """An NVUE that ignores `--confirm` applies the change without a timer."""
    cumulus = Switch(tmp_path / "cumulus")
    output = cumulus.send(golden_text("cumulus", "apply").replace("--confirm 5m -y", "-y"))
    assert "failed: NVUE runs no timer for it; the change was undone at once" in output
    assert cumulus.state["running"] == cumulus.found
    cumulus.become(refuses="nv set .* probability")
    assert "failed: nv set" in cumulus.say("apply")
    assert cumulus.state.get("wanted") is None
    cumulus.become(refuses=None, wanted={"system": {"hostname": "other"}})
    assert "failed: changes of others are pending: apply them, or discard them" in cumulus.say("apply")
    assert cumulus.state["running"] == cumulus.found


@pytest.mark.parametrize("system", TIMED)
def test_a_change_that_waits_is_undone_by_the_switch_or_a_rollback(system: str, tmp_path: Path) -> None:
    switch = Switch(tmp_path / system)
    switch.say("apply")
    switch.wait(4)
    assert switch.state["running"] != switch.found
    switch.wait(1)
    assert switch.state["running"] == switch.found
    assert ("failed: too late" if system == "cumulus" else "% Cannot enter session") in switch.say("confirm")
    switch.say("apply", "rollback")
    switch.wait(60)
    assert switch.state["running"] == switch.found
    assert not list(switch.folder.glob(".roundabout*"))


@pytest.mark.parametrize("release", ["4.30.0F-31408673.4300F", LATER_EOS])
def test_eos_is_changed_confirmed_and_undone(tmp_path: Path, release: str) -> None:
    eos = Switch(tmp_path / "eos", release=release)
    output = eos.say("apply", "pending")
    assert output.count("pendingCommitTimer" if release < "4.32" else '"commitTimerSessionName": "roundabout"') == 2
    assert "saved" not in eos.state
    output = eos.say("confirm", "compare", "pending", "save")
    assert "ommitTimer" not in output
    assert "\n+" not in output
    changed = eos.state["running"]
    assert changed == eos.state["saved"] != eos.found

    drifted = changed["qos profile ROUNDABOUT"] | {"uc-tx-queue 1": {}}
    eos.become(running=changed | {"qos profile ROUNDABOUT": drifted})
    assert "\n-   uc-tx-queue 1\n" in eos.say("compare")
    eos.say("apply", "confirm")  # the name of a completed session is free again
    assert eos.state["running"] == changed
    assert "\n-   service-profile ROUNDABOUT\n" in eos.say("rollback")
    assert eos.state["running"] == eos.state["saved"] == eos.found


def test_settings_of_a_port_of_eos_that_the_undo_would_lose_are_named(tmp_path: Path) -> None:
    eos = Switch(tmp_path / "eos")
    interfaces = eos.state["interfaces"]
    interfaces["Ethernet1"] |= {"mtu": 1500, "bandwidth": 100000000000}
    site = {"interface Ethernet2": {"service-profile AI": None}, "qos map dscp 24 26 to traffic-class 1": None}
    eos.become(running=eos.found | site, interfaces=interfaces)
    environment = Environment(loader=FileSystemLoader(TEMPLATES), trim_blocks=True, autoescape=False)
    environment.filters.update(FilterModule().filters())
    output = eos.say("compare")
    answer = {"stdout": output, "stdout_lines": output.splitlines()}
    environment.tests["search"] = lambda text, pattern: bool(re.search(pattern, text))
    lines = environment.get_template("eos/ports.j2").render(facts("eos", tmp_path), switches_answer=answer).splitlines()
    assert lines == [
        "port Ethernet1 mtu: found 1500, expected 4200 or more: interface Ethernet1, mtu 9214",
        "port Ethernet1 speed: found 100G, expected 50G",
        "has Ethernet1: speed 100G, mtu 1500",
        "has Ethernet2: speed 50G, mtu 9214",
        f"port Ethernet2 setting: found `service-profile AI` of the site, expected none: {REMEDY}",
        f"port all setting: found `qos map dscp 24 26 to traffic-class 1` of the site, expected none: {REMEDY}",
    ]


@pytest.mark.proof
def test_a_playbook_changes_cumulus_and_refuses_eos(tmp_path: Path) -> None:
    switches = Switches(tmp_path, TIMED)
    eos = switches.state("eos")["running"] | {"interface Ethernet2": {"service-profile AI": None}}
    switches.become("eos", running=eos)
    said = switches.complaints("site")
    assert "switch eos: port Ethernet2 setting: found `service-profile AI` of the site, expected none" in said
    assert "; nothing was changed" in said
    assert "done: cumulus" in said
    assert switches.state("eos")["running"] == eos
    assert switches.state("cumulus")["saved"] != switches.running("found")["cumulus"]


@pytest.mark.proof
def test_playbooks_change_verify_and_undo(tmp_path: Path) -> None:
    switches = Switches(tmp_path, TIMED)
    assert switches.play("site") == {"cumulus": 2, "eos": 2}
    assert switches.play("site") == {"cumulus": 0, "eos": 0}
    assert all(switches.state(system)["saved"] == switches.state(system)["running"] for system in TIMED)
    switches.play("verify")
    assert switches.play("rollback") == {"cumulus": 1, "eos": 1}
    assert switches.running() == switches.running("found")
    switches.become("eos", release="4.21.1F")
    switches.hosts["cumulus"]["switches_facts"]["lossless"] |= {"priority": 4}
    said = switches.complaints("verify")
    assert "switch eos, a DCS-7060CX-32S: found release 4.21.1F, expected one of eos that Roundabout supports" in said
    assert "expected priority 3, dscp 24 to 31, cnp_priority 6 and cnp_dscp 48 to 55, as NVUE's qos roce has" in said
