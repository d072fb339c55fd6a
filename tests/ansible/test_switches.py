# SPDX-License-Identifier: Apache-2.0
"""What is sent to switches, word by word, and its effect on fake ones.

ROUNDABOUT_GOLDEN=1 renews the golden files: read the difference.
"""

import json
import os
import re
import subprocess
import sys
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import pytest

from tests.ansible.switches import COMPARED, FAKE, GOLDEN, PLAN, PORTS, SYSTEMS, Switches, facts, golden_text

pytestmark = pytest.mark.unit

ROLE = Path(__file__).parents[2] / "ansible/roles/switches"
# A router: ECN alone, and two routing engines.
MX480 = "\n        pfc: false\n        routing_engines: 2"
ACTIONS = ("release", "pending", "compare", "apply", "confirm", "rollback")
RENDER = """
- hosts: all
  connection: local
  gather_facts: false
  vars:
    switches_shared: []
    templates: >-
      {% for action in actions %}
      {{ 'shared' if action in switches_shared else switches_facts.system }}/{{ action }}.j2
      {% endfor %}
  tasks:
    - include_vars: "{{ variables }}/{{ switches_facts.system }}.yml"
    - report:
        content: "{{ query('template', *templates.split()) | to_json }}"
        dest: "{{ rendered }}/{{ inventory_hostname }}.json"
"""


def actions_of(system: str) -> list[str]:
    """Return the conversations with a system. A few systems save a change apart, and some are only compared."""
    if system in COMPARED:
        return [action for action in ACTIONS if action not in ("apply", "confirm")]
    return [*ACTIONS, *(["save"] if (ROLE / "templates" / system / "save.j2").exists() else [])]


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """All that is said to each kind of switch, rendered by Ansible itself."""
    folder = tmp_path_factory.mktemp("rendered")
    hosts = {system: facts(system, folder) for system in PORTS} | {"mx480": facts("junos", folder, MX480)}
    for system in hosts:
        hosts[system]["actions"] = actions_of(system)
    variables = {"rendered": str(folder), "variables": str(ROLE / "vars")}
    (folder / "templates").symlink_to(ROLE / "templates")
    (folder / "hosts.json").write_text(json.dumps({"all": {"vars": variables, "hosts": hosts}}))
    (folder / "play.yml").write_text(RENDER)
    command = [Path(sys.executable).with_name("ansible-playbook"), "-i", "hosts.json", "play.yml"]
    config = ROLE.parents[1] / "ansible.cfg"
    environment = os.environ | {"LC_ALL": "C.UTF-8", "ANSIBLE_CONFIG": str(config)}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    texts = {system: json.loads((folder / f"{system}.json").read_text()) for system in hosts}
    return {system: dict(zip(actions_of(system), texts[system], strict=True)) for system in hosts}


def split_off_plan(texts: dict[str, str]) -> dict[str, str]:
    """Return the texts with `PLAN` in place of the longest part that two of them share, and that part.

    A system that is only compared has no such part.
    """
    if "apply" not in texts:
        return texts
    compare, apply = (texts[action].splitlines(keepends=True) for action in ("compare", "apply"))
    begin, _, size = SequenceMatcher(None, compare, apply, autojunk=False).find_longest_match()
    plan = "".join(compare[begin : begin + size])
    return {"plan": plan} | {action: text.replace(plan, PLAN) for action, text in texts.items()}


@pytest.mark.parametrize(
    ("system", "action"),
    [
        (system, each)
        for system in (*PORTS, "mx480")
        for each in ([] if system in COMPARED else ["plan"]) + actions_of(system)
    ],
)
def test_rendered_switch_commands_equal_the_golden_files(
    rendered: dict[str, dict[str, str]], system: str, action: str
) -> None:
    said = split_off_plan(rendered[system])[action]
    golden = GOLDEN / system / action
    if os.environ.get("ROUNDABOUT_GOLDEN"):
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text(said)
    assert said == golden.read_text()


UNDONE = "What was changed without being confirmed, the switch undoes by itself within 5 minutes"


def drift(switches: Switches) -> None:
    """Another program changes a value on each."""
    junos, sonic, tofino = (switches.state(system)["running"] for system in SYSTEMS)
    at = next(number for number, statement in enumerate(junos) if "fill-level" in statement)
    junos[at] = junos[at].replace("[ 5 10 ]", "[ 5 20 ]")
    del sonic["QUEUE"]["Ethernet4|3"]
    tofino["port.port"]["129"]["RX_PFC_EN_MAP"] = 0
    for system, running in zip(SYSTEMS, (junos, sonic, tofino), strict=True):
        switches.become(system, running=running)


def changes(number: int) -> dict[str, int]:
    """Return this number of changes for each switch but the unmanaged one."""
    return dict.fromkeys(SYSTEMS, number) | {"arista": 0}


@pytest.fixture(scope="module")
def configured(tmp_path_factory: pytest.TempPathFactory) -> Switches:
    """Switches that were changed once, kept as `found` and `configured`, and an unmanaged one that cannot be reached.

    A run of a playbook takes some seconds of CPU, so that each has as many cases as it can.
    """
    switches = Switches(tmp_path_factory.mktemp("switches"), SYSTEMS)
    switches.hosts["arista"] = {"switches_facts": {"system": "unmanaged"}, "switches_ssh": ["false"]}
    assert switches.play("site") == changes(2)
    assert switches.files() == ["roundabout-before-tofino.py", "roundabout-before.sh"]
    switches.keep("configured")
    return switches


@pytest.fixture
def switches(configured: Switches) -> Switches:
    configured.restore("configured")
    return configured


def test_check_mode_says_what_would_change_and_changes_nothing(switches: Switches) -> None:
    switches.restore("found")
    shown: list[str] = []
    assert switches.play("site", check=True, show=shown.append) == changes(1)
    text = " ".join(" ".join(shown).split())
    assert "+ ROUNDABOUT class-of-service drop-profiles ROUNDABOUT interpolate fill-level [ 5 10 ];" in text
    assert "differs PORT_QOS_MAP|Ethernet0 pfc_enable: found 5, expected 3" in text
    assert "differs 1/1 TX_PFC_EN_MAP: found 32, expected 8" in text
    assert "differs 1/0 pfc_enable, pfc_skid_max_cells: found None, expected (True, 4000)" in text
    assert "differs PORT_QOS_MAP: priority 5 of Ethernet0 would no longer be lossless" in text
    assert text.count("differs ") == 126 + 16
    assert switches.running() == switches.running("found")
    assert switches.files() == []


def test_a_confirmed_change_stays_and_a_second_time_changes_nothing(switches: Switches) -> None:
    switches.wait(60)
    assert switches.play("site") == changes(0)
    assert switches.running() == switches.running("configured") != switches.running("found")
    assert switches.state("sonic")["saved"] == switches.state("sonic")["running"]


def test_verify_names_drift_and_what_is_wrong_with_ports(switches: Switches) -> None:
    reports = switches.run("verify").reports
    assert reports["arista"]["not_compared"].startswith("unmanaged: its settings are the owner's")
    drift(switches)
    sonic, tofino = (switches.state(system)["running"] for system in ("sonic", "tofino"))
    sonic["PORT"]["Ethernet4"] |= {"speed": "100000", "mtu": "1500"}
    tofino["port.port"]["129"]["RX_MTU"] = 1518
    switches.become("sonic", running=sonic)
    switches.become("tofino", running=tofino)
    interfaces = switches.state("junos")["interfaces"]
    interfaces["et-0/0/1"] = {"mtu": 1514, "speed": "100Gbps"}
    switches.become("junos", interfaces=interfaces)
    said = switches.complaints("verify")
    assert "port et-0/0/1 mtu: found 1514, expected 4214 or more: set interfaces et-0/0/1 mtu 9192" in said
    assert "port et-0/0/1 speed: found 100Gbps, expected 50Gbps" in said
    assert "port Ethernet4 mtu: found 1500, expected 4200 or more: sudo config interface mtu Ethernet4 9100" in said
    assert "port Ethernet4 speed: found 100000, expected 50000: sudo config interface speed Ethernet4 50000" in said
    assert "port 1/1 TX_MTU, RX_MTU: found 1518, expected 4218 or more" in said
    assert said.count("port ") == 5
    assert "switch junos is not as it was configured:" in said
    assert "- ROUNDABOUT class-of-service drop-profiles ROUNDABOUT interpolate fill-level [ 5 20 ];" in said
    assert "+ ROUNDABOUT class-of-service drop-profiles ROUNDABOUT interpolate fill-level [ 5 10 ];" in said
    assert "differs QUEUE|Ethernet4|3 wred_profile: found None, expected ROUNDABOUT" in said
    assert "differs 1/1 RX_PFC_EN_MAP: found 0, expected 8" in said
    assert "differs BUFFER_PG|Ethernet4|3 profile: found pg_lossless_50000_5m_profile" in said  # of the speed
    assert said.count("differs ") == 5


def test_a_rollback_brings_back_exactly_what_was_found(
    switches: Switches, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for system in SYSTEMS:
        unchanged = switches.hosts[system] | {"switches_ssh": [*FAKE, str(new(tmp_path / system))]}
        monkeypatch.setitem(switches.hosts, f"unchanged-{system}", unchanged)
    shown: list[str] = []
    none = dict.fromkeys((f"unchanged-{system}" for system in SYSTEMS), 0)
    assert switches.play("rollback", show=shown.append) == changes(1) | none
    assert "\n".join(shown).count("msg: nothing to undo") == len(SYSTEMS)
    assert switches.running() == switches.running("found")
    assert switches.files() == []
    say(switches.folder / "now" / "sonic", golden_text("sonic", "rollback"))
    assert switches.running() == switches.running("found")


@pytest.mark.proof
def test_a_change_that_cuts_the_switch_off_is_undone_by_the_switch(switches: Switches) -> None:
    drift(switches)
    drifted = switches.running()
    for system in SYSTEMS:
        switches.become(system, cuts=True)
    said = switches.complaints("site")
    for system in SYSTEMS:
        switches.become(system, cuts=False)
        timeout = (
            f"switch {system}, confirm: ssh: connect to host switch port 22: Connection timed out (exit status 255)"
        )
        assert f"{timeout}. {UNDONE}" in said
    assert switches.running() == switches.running("configured")

    said = switches.complaints("verify")
    for system in SYSTEMS:
        assert f"switch {system}: a change of before was not confirmed, and undoes itself within 5 minutes" in said
    switches.wait(4)
    assert switches.running() == switches.running("configured")

    switches.keep("waiting")
    switches.wait(1)
    assert switches.running() == drifted
    assert switches.files() == ["roundabout-before-tofino.py", "roundabout-before.sh"]

    switches.restore("waiting")
    assert switches.play("rollback") == changes(1)
    switches.wait(60)
    assert switches.running() == switches.running("found")
    assert switches.files() == []


@pytest.mark.proof
def test_a_confirmation_that_comes_too_late_is_no_success(switches: Switches) -> None:
    switches.restore("found")
    for system in SYSTEMS:
        switches.become(system, late=5)
    said = switches.complaints("site")
    assert "switch junos took the change, but is not as requested" in said
    assert f"switch sonic, confirm: failed: too late: the change was undone (exit status 1). {UNDONE}" in said
    assert f"switch tofino, confirm: failed: too late: the change was undone (exit status 1). {UNDONE}" in said
    assert switches.running() == switches.running("found")
    assert switches.files() == []


def test_a_change_that_is_refused_is_never_confirmed(switches: Switches) -> None:
    switches.restore("found")
    switches.become("junos", refuses="^commit confirmed")
    switches.become("sonic", refuses="^config load")
    switches.become("tofino", refuses="skid_max_cells")
    said = switches.complaints("site")
    assert f"switch junos, apply: error: configuration check-out failed (exit status 0). {UNDONE}" in said
    assert f"switch sonic, apply: failed: load (exit status 1). {UNDONE}" in said
    assert (
        "switch tofino, apply: failed: bfshell: bfrt.BfRtTableError: Error: table_entry_mod failed on table tf1" in said
    )
    switches.wait(5)
    assert switches.running() == switches.running("found")
    assert switches.files() == []


def test_a_question_that_is_not_answered_is_no_agreement(
    switches: Switches, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Two further switches lack the port's speed on SONiC, and the port's number on Tofino."""
    monkeypatch.setitem(
        switches.hosts, "silent", switches.hosts["junos"] | {"switches_ssh": ["sh", "-c", "cat > /dev/null"]}
    )
    sonic, tofino = (json.loads((new(tmp_path / each) / "switch.json").read_text()) for each in ("sonic", "tofino"))
    del sonic["running"]["PORT"]["Ethernet4"]["speed"], tofino["running"]["port.port_hdl_info"]["1,1"]
    for system, state in (("sonic", sonic), ("tofino", tofino)):
        (tmp_path / system / "switch.json").write_text(json.dumps(state))
        lacking = switches.hosts[system] | {"switches_ssh": [*FAKE, str(tmp_path / system)]}
        monkeypatch.setitem(switches.hosts, f"lacking-{system}", lacking)
    switches.become("junos", refuses="explicit-congestion-notification")
    switches.become("sonic", refuses="^sonic-cfggen")
    switches.become("tofino", refuses="^bfshell")
    said = switches.complaints("verify")
    assert "switch silent, release: no answer (exit status 0)" in said
    assert "switch junos, compare: syntax error. (exit status 0)" in said
    assert "switch sonic, release: failed: sonic-cfggen (exit status 1)" in said
    assert "switch tofino, release: failed: bfshell: Error: bfshell refuses (exit status 1)" in said
    assert "PORT|Ethernet4: found no speed, expected one in Mbit/s, from which the headroom follows" in said
    assert "bfshell: LookupError: 1/1: found no DEV_PORT, expected the switch to have one" in said
    assert switches.running() == switches.running("configured")


def test_nothing_is_changed_without_leave_or_on_what_is_not_known(
    switches: Switches, monkeypatch: pytest.MonkeyPatch
) -> None:
    switches.restore("found")
    without = {**switches.hosts["sonic"]["switches_facts"], "apply_on": None}
    monkeypatch.setitem(switches.hosts, "sonic", {**switches.hosts["sonic"], "switches_facts": without})
    switches.become("junos", release="12.3R6.6")
    switches.become("tofino", release="9.13.2-1")
    shown: list[str] = []
    said = switches.complaints("site", show=shown.append)
    assert "switch junos, a qfx5120-48y: found release 12.3R6.6, expected one of junos that Roundabout supports" in said
    assert "`system: unmanaged` leaves a switch to its owner" in said
    assert (
        "switch tofino: found tofino1 with 9.13.2-1, expected tofino1 with 9.13.4-404, as its `apply_on` says" in said
    )
    assert "done: arista, sonic" in said
    assert "switch sonic is compared only: it has no `apply_on` in the inventory" in " ".join(" ".join(shown).split())
    assert switches.running() == switches.running("found")


def test_sonic_puts_packets_into_their_queue_and_headroom(switches: Switches) -> None:
    """SAI has queue and priority group 0 for what no map names."""
    running = switches.running()["sonic"]
    for port in PORTS["sonic"]:
        maps = running["PORT_QOS_MAP"][port]
        for dscp, queue in (("26", "3"), ("48", "6"), ("0", "0")):
            traffic_class = running["DSCP_TO_TC_MAP"][maps["dscp_to_tc_map"]][dscp]
            assert running["TC_TO_QUEUE_MAP"][maps["tc_to_queue_map"]][traffic_class] == queue
            group = running["TC_TO_PRIORITY_GROUP_MAP"][maps["tc_to_pg_map"]][traffic_class]
            assert group == ("3" if dscp == "26" else "0")
        assert running["MAP_PFC_PRIORITY_TO_QUEUE"][maps["pfc_to_queue_map"]]["3"] == "3"
        assert running["BUFFER_PG"][f"{port}|3"] == {"profile": "pg_lossless_50000_5m_profile"}
        assert running["SCHEDULER"][running["QUEUE"][f"{port}|6"]["scheduler"]]["type"] == "STRICT"


@pytest.mark.parametrize(("release", "refused"), [
    ("20220531.27", "WRED_PROFILE"), ("202311.1", "WRED_PROFILE"), ("202505.1", "WRED_PROFILE"), ("202511.1", None)
])  # fmt: skip
def test_sonics_checkpoint_rollback_cannot_undo_these_tables(
    switches: Switches, release: str, refused: str | None
) -> None:
    switches.become("sonic", release=release)
    folder = switches.folder / "now" / "sonic"
    (folder / "etc/sonic/checkpoints/before.cp.json").write_text(json.dumps(switches.running("found")["sonic"]))
    done = subprocess.run(
        [*FAKE, folder], input="sudo -n config rollback before\n", text=True, capture_output=True, check=False
    )
    assert (f"Modification of {refused} table is illegal" in done.stderr) == bool(refused)
    assert (switches.running()["sonic"] == switches.running("found")["sonic"]) == (not refused)


def new(switch: Path) -> Path:
    """A fake one, called as its system is."""
    subprocess.run([*FAKE, switch, "--minutes", "0"], check=True)
    return switch


def say(switch: Path, *texts: str) -> str:
    """One conversation after the other."""
    done = [subprocess.run([*FAKE, switch], input=text, text=True, capture_output=True).stdout for text in texts]
    return "".join(done)


SONIC_IN_THE_WAY = [
    ("BUFFER_POOL", {}, "BUFFER_POOL|ingress_lossless_pool: found none, expected what `config qos reload` makes"),
    ("PORT", {"Ethernet0": {"speed": "50000"}}, "PORT|Ethernet4: found none, expected the inventory's port"),
    ("CABLE_LENGTH", {"AZURE": {"Ethernet0": "5m"}}, "CABLE_LENGTH|AZURE Ethernet4: found none, expected what `config"),
    ("QUEUE", {"Ethernet4|3-x": {}}, "QUEUE|Ethernet4|3-x: found the range 3-x, expected FIRST-LAST, as in 3-4"),
    (
        "PORT",
        {"Ethernet0": {"lanes": "0"}, "Ethernet4": {}},
        "PORT|Ethernet0: found no speed, expected one in Mbit/s, from",
    ),
    (
        "PORT",
        {"Ethernet0": {"speed": "50000"}, "Ethernet4": {"speed": "50G"}},
        "PORT|Ethernet4: found speed 50G, expected",
    ),
    ("PORT", {"Ethernet0": {"speed": "0"}}, "PORT|Ethernet0: found speed 0, expected one in Mbit/s"),
    ("PORT", ["Ethernet0"], 'PORT: found ["Ethernet0"], expected entries, each with its fields'),
    ("PORT", {"Ethernet0": None}, 'PORT: found {"Ethernet0": null}, expected entries, each with its fields'),
    ("PFC_WD", {"GLOBAL": {"POLL_INTERVAL": "soon"}}, "PFC_WD|GLOBAL: found POLL_INTERVAL soon, expected one in ms"),
]


@pytest.mark.parametrize(("table", "entries", "message"), SONIC_IN_THE_WAY)
def test_sonic_without_what_ours_needs_is_refused_by_name(
    table: str, entries: dict[str, Any], message: str, tmp_path: Path
) -> None:
    switch = new(tmp_path / "sonic")
    path = switch / "switch.json"
    state = json.loads(path.read_text())
    path.write_text(json.dumps(state | {"running": state["running"] | {table: entries}}))
    assert f"failed: {message}" in say(switch, golden_text("sonic", "apply"))
    assert list(switch.rglob("*roundabout*")) == []


def test_sonic_that_computes_headroom_gets_a_group_of_no_profile(tmp_path: Path) -> None:
    switch = new(tmp_path / "sonic")
    path = switch / "switch.json"
    state = json.loads(path.read_text())
    state["running"]["DEVICE_METADATA"]["localhost"]["buffer_model"] = "dynamic"
    path.write_text(json.dumps(state))
    output = say(switch, *(golden_text("sonic", action) for action in ("apply", "confirm")))
    assert "failed" not in output
    assert json.loads(path.read_text())["running"]["BUFFER_PG"]["Ethernet4|3"] == {"profile": "NULL"}
    say(switch, golden_text("sonic", "rollback"))
    assert json.loads(path.read_text())["running"] == state["running"]


def test_sonics_watchdog_waits_no_less_than_the_site_polls(tmp_path: Path) -> None:
    switch = new(tmp_path / "sonic")
    path = switch / "switch.json"
    state = json.loads(path.read_text())
    state["running"]["PFC_WD"] = {"GLOBAL": {"POLL_INTERVAL": "400"}}  # as `pfcwd start_default` has it, of 40 ports
    path.write_text(json.dumps(state))
    assert "failed" not in say(switch, *(golden_text("sonic", action) for action in ("apply", "confirm")))
    watched = json.loads(path.read_text())["running"]["PFC_WD"]
    assert watched["Ethernet4"] == {"action": "drop", "detection_time": "400", "restoration_time": "400"}
    assert "differs" not in say(switch, golden_text("sonic", "compare"))
    say(switch, golden_text("sonic", "rollback"))
    assert json.loads(path.read_text())["running"] == state["running"]


@pytest.mark.parametrize("system", ["sonic", "tofino"])
def test_a_confirmation_while_the_undo_runs_saves_nothing(system: str, tmp_path: Path) -> None:
    switch = new(tmp_path / system)
    words = {action: golden_text(system, action) for action in ("apply", "confirm", "rollback")}
    say(switch, words["apply"])
    path = switch / "switch.json"
    state = json.loads(path.read_text())
    path.write_text(json.dumps(state | {"busy": [f"{unit}.service" for unit in state["timers"]]}))
    assert "failed: too late: the change is being undone" in say(switch, words["confirm"])
    assert "saved" not in json.loads(path.read_text())
    assert [found.name for found in switch.rglob("*roundabout-before*")] == []


@pytest.mark.parametrize("system", ["sonic", "tofino"])
def test_an_undo_script_without_its_timer_is_named_and_rolled_back(system: str, tmp_path: Path) -> None:
    """A reboot leaves it on SONiC, and an undo that failed on both."""
    switch = new(tmp_path / system)
    path = switch / "switch.json"
    found = json.loads(path.read_text())["running"]
    words = {action: golden_text(system, action) for action in ("apply", "pending", "rollback")}
    assert "rollback pending" in say(switch, words["apply"], words["pending"])
    path.write_text(json.dumps(json.loads(path.read_text()) | {"timers": {}}))
    assert "rollback left behind" in say(switch, words["pending"])
    assert "failed" not in say(switch, words["rollback"])
    assert "rollback" not in say(switch, words["pending"])
    assert json.loads(path.read_text())["running"] == found


def test_a_change_that_cannot_be_saved_is_undone_at_once(tmp_path: Path) -> None:
    switch = new(tmp_path / "sonic")
    path = switch / "switch.json"
    found = json.loads(path.read_text())["running"]
    say(switch, golden_text("sonic", "apply"))
    path.write_text(json.dumps(json.loads(path.read_text()) | {"refuses": "^config save"}))
    assert "failed: save; the change was undone at once" in say(switch, golden_text("sonic", "confirm"))
    state = json.loads(path.read_text())
    assert (state["running"], state["timers"]) == (found, {})


@pytest.mark.parametrize(("system", "old", "new_"), [
    ("sonic", '"green_min_threshold": "80000"', '"green_min_threshold": "40000"'),
    ("tofino", ".f1\", 1000))", ".f1\", 500))"),
])  # fmt: skip
@pytest.mark.proof
def test_a_rollback_goes_back_over_all_changes(system: str, old: str, new_: str, tmp_path: Path) -> None:
    switch = new(tmp_path / system)
    found = json.loads((switch / "switch.json").read_text())["running"]
    words = {action: golden_text(system, action) for action in ("apply", "confirm", "rollback")}
    assert old in words["apply"]
    say(switch, words["apply"], words["confirm"])
    first = json.loads((switch / "switch.json").read_text())["running"]
    output = say(switch, words["apply"].replace(old, new_), words["confirm"].replace(old, new_))
    assert "failed" not in output
    assert json.loads((switch / "switch.json").read_text())["running"] not in (first, found)
    say(switch, words["rollback"])
    assert json.loads((switch / "switch.json").read_text())["running"] == found
    assert list(switch.rglob("*roundabout*")) == []


def test_tofino_that_ignores_pauses_is_refused(tmp_path: Path) -> None:
    """`mode_rx` is read only: nothing could bring it about."""
    switch = new(tmp_path / "tofino")
    path = switch / "switch.json"
    state = json.loads(path.read_text())
    state["running"]["tf1.tm.port.flowcontrol"]["129"]["mode_rx"] = "NONE"
    path.write_text(json.dumps(state))
    output = say(switch, golden_text("tofino", "apply"))
    assert "failed: differs 1/1 mode_rx: found NONE, expected PFC, which bfrt cannot set" in output
    assert json.loads(path.read_text())["running"] == state["running"]


def test_a_router_has_ecn_without_pfc_on_both_routing_engines(
    rendered: dict[str, dict[str, str]], tmp_path: Path
) -> None:
    switch, words = new(tmp_path / "junos"), rendered["mx480"]
    path = switch / "switch.json"
    found = json.loads(path.read_text())
    path.write_text(json.dumps(found | {"platform": "mx480", "other": found["running"]}))

    assert "syntax error" in say(switch, rendered["junos"]["compare"])
    assert json.loads(path.read_text())["running"] == found["running"]

    assert "error" not in say(switch, words["apply"], words["confirm"])
    state = json.loads(path.read_text())
    assert state["other"] == state["running"] != found["running"]
    assert any("explicit-congestion-notification" in each for each in state["running"])
    # 20000 cells of 80 bytes, at half of 50 Gbit/s
    assert any(each.endswith("schedulers ROUNDABOUT-50G buffer-size temporal 512") for each in state["running"])

    say(switch, words["rollback"])
    state = json.loads(path.read_text())
    assert state["other"] == state["running"] == found["running"]


@pytest.mark.parametrize("system", ["junos", "mx480"])
def test_each_class_has_a_reservation_or_strict_priority(rendered: dict[str, dict[str, str]], system: str) -> None:
    """A scheduler map replaces the default one, which gives 95 % to best effort and 5 % to network control."""
    said = rendered[system]["apply"]
    mapped = dict(re.findall(r"scheduler-maps ROUNDABOUT-50G forwarding-class (\S+) scheduler (\S+)", said))
    assert sorted(mapped) == ["CNP", "NO-LOSS", "best-effort", "network-control"]
    rates = {name: re.findall(rf"schedulers {name} transmit-rate percent (\d+)", said) for name in mapped.values()}
    assert rates.pop(mapped["CNP"]) == []
    assert f"schedulers {mapped['CNP']} priority strict-high" in said
    assert sum(int(percent) for found in rates.values() for percent in found) <= 100
    assert all(rates.values())


@pytest.mark.proof
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_change_that_is_cut_short_at_whatever_line_leaves_nothing(system: str, tmp_path: Path) -> None:
    switch = tmp_path / system
    wait = [*FAKE, switch, "--minutes", "5"]
    subprocess.run(wait, check=True)
    found = json.loads((switch / "switch.json").read_text())["running"]
    lines = golden_text(system, "apply").splitlines(keepends=True)
    for count in range(len(lines), 0, -max(4, len(lines) // 20)):
        subprocess.run([*FAKE, switch], input="".join(lines[:count]), text=True, capture_output=True)
        now = json.loads((switch / "switch.json").read_text())["running"]
        assert (now != found) == (count == len(lines)), count
        subprocess.run(wait, check=True)
        assert json.loads((switch / "switch.json").read_text())["running"] == found
        assert list(switch.rglob("*roundabout*")) == []


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_logical_switches_of_one_tofino_are_rolled_back_in_any_order(order: str, tmp_path: Path) -> None:
    """Each has a port of its own; both set the ECN registers."""

    def say(action: str, name: str) -> None:
        other = {"a": "1/1", "b": "1/0"}[name]
        text = golden_text("tofino", action).replace("-tofino", f"-{name}")
        text = re.sub(rf'^port = [^\n]*"{other}".*?(?=^port = |^$)', "", text, flags=re.MULTILINE | re.DOTALL)
        done = subprocess.run([*FAKE, switch], input=text, text=True, capture_output=True)
        assert done.stdout.endswith("done\n"), done.stdout

    def running() -> Any:
        return json.loads((switch / "switch.json").read_text())["running"]

    switch = tmp_path / "tofino"
    subprocess.run([*FAKE, switch, "--minutes", "0"], check=True)
    found = running()
    for name in "ab":
        say("apply", name)
        say("confirm", name)
    assert running() != found
    for name in order:
        say("rollback", name)
    assert running() == found
