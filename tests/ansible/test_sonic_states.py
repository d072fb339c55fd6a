# SPDX-License-Identifier: Apache-2.0
"""SONiC's own default configurations: what is split comes back, and no priority group loses its buffer.

The proof renders 20 SKUs from a checkout of sonic-buildimage, the folder in ROUNDABOUT_SONIC_BUILDIMAGE. A few rendered
states are kept in sonic_states.
"""

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.ansible.sonic_states import SKUS, State, render_state
from tests.ansible.switches import FAKE, golden_text

pytestmark = pytest.mark.unit

HERE = Path(__file__).parent
CHECKOUT = os.environ.get("ROUNDABOUT_SONIC_BUILDIMAGE")


class Conversation(NamedTuple):
    """A fake switch, and the words that the golden files have for its ports, speed and cable."""

    folder: Path
    words: Callable[[str], str]

    def say(self, *actions: str) -> str:
        """Return the answers to the actions, one conversation each."""
        said = [
            subprocess.run([*FAKE, self.folder], input=self.words(action), text=True, capture_output=True).stdout
            for action in actions
        ]
        return "".join(said)

    def state(self) -> dict[str, Any]:
        state: dict[str, Any] = json.loads((self.folder / "switch.json").read_text())
        return state

    def become(self, **changed: Any) -> None:
        (self.folder / "switch.json").write_text(json.dumps(self.state() | changed))


def start(folder: Path, state: State) -> Conversation:
    """Return a switch in `state`, whose first two ports of one speed are the inventory's."""
    speeds = {port: fields["speed"] for port, fields in state.config_db["PORT"].items()}
    speed = next(speed for speed in speeds.values() if list(speeds.values()).count(speed) > 1)
    ports = [port for port in speeds if speeds[port] == speed][:2]
    lengths = sorted(length for each, length in state.headroom if each == speed)
    cable = next((length for length in ("5m", *lengths) if length in lengths), "5m")

    def words(action: str) -> str:
        text = golden_text("sonic", action)
        names = {"Ethernet0": ports[0], "Ethernet4": ports[1], '"50000"': f'"{speed}"', '"5m"': f'"{cable}"'}
        return re.sub("|".join(names), lambda found: names[found[0]], text)

    switch = Conversation(folder / "sonic", words)
    subprocess.run([*FAKE, switch.folder, "--minutes", "0"], check=True)
    lookup = {"lookup": sorted(state.headroom)} if state.headroom else {}
    switch.become(running=state.config_db, **lookup)
    switch.say("pending")  # lets buffermgrd make its groups
    return switch


def assert_undone_exactly(switch: Conversation) -> None:
    """Apply, confirm, compare and roll back. No group of the ASIC may end without the buffer that its entry names."""
    found = switch.state()
    compared = switch.say("compare")
    assert "differs" in compared
    assert "failed" not in compared
    output = switch.say("apply", "confirm")
    assert "failed" not in output
    assert "differs" not in switch.say("compare")
    changed = switch.state()
    assert changed["running"] != found["running"]
    for table in ("QUEUE", "BUFFER_PG"):
        for entry, fields in changed["running"][table].items():
            assert "-" in entry or changed["asic"][f"{table}|{entry}"] == fields
    groups = {key for key, fields in found["asic"].items() if key.startswith("BUFFER_PG|") and fields}
    assert not [key for key in groups if not changed["asic"][key]]
    assert "failed" not in switch.say("rollback")
    after = switch.state()
    assert after["running"] == found["running"]
    assert {key: fields for key, fields in after["asic"].items() if fields} == found["asic"]


# The next test changes and undoes msn3700 with entries for several ports.
@pytest.mark.parametrize("name", ["arista-7060cx", pytest.param("msn3700", marks=pytest.mark.proof), "sn2700-dynamic"])
def test_a_kept_state_is_changed_and_undone(name: str, tmp_path: Path) -> None:
    config_db = json.loads((HERE / "sonic_states" / f"{name}.json").read_text())
    assert_undone_exactly(start(tmp_path, State(config_db, frozenset())))


def test_entries_for_several_ports_and_numbers_are_split_and_joined_again(tmp_path: Path) -> None:
    """Ports with commas, and ranges of queues: as older releases write them."""
    config_db = json.loads((HERE / "sonic_states" / "msn3700.json").read_text())
    maps = config_db["PORT_QOS_MAP"]
    config_db["PORT_QOS_MAP"] = {"Ethernet0,Ethernet4": maps["Ethernet0"]}
    config_db["QUEUE"] = {
        "Ethernet0,Ethernet4|0-2": {"scheduler": "scheduler.0"},
        "Ethernet0,Ethernet4|3-4": {"scheduler": "scheduler.1", "wred_profile": "AZURE_LOSSLESS"},
        "Ethernet0,Ethernet4|5-6": {"scheduler": "scheduler.0"},
    }
    switch = start(tmp_path, State(config_db, frozenset()))
    output = switch.say("compare")
    assert "differs QUEUE|Ethernet0,Ethernet4|3-4: found one entry, expected Ethernet0|3, Ethernet0|4, Eth" in output
    assert "differs PORT_QOS_MAP: priority 4 of Ethernet0, Ethernet4 would no longer be lossless" in output
    assert_undone_exactly(switch)


def test_a_group_in_two_entries_is_refused(tmp_path: Path) -> None:
    """As `config interface pfc priority Ethernet0 4 off` leaves them: either may be in force."""
    config_db = json.loads((HERE / "sonic_states" / "msn3700.json").read_text())
    config_db["BUFFER_PG"]["Ethernet0|3"] = config_db["BUFFER_PG"]["Ethernet0|3-4"]
    output = start(tmp_path, State(config_db, frozenset())).say("compare")
    assert "found Ethernet0|3 in Ethernet0|3-4 too, expected it in one entry, as after config qos reload" in output


def test_a_cut_while_entries_are_split_is_undone_by_the_timer(tmp_path: Path) -> None:
    switch = start(tmp_path, State(json.loads((HERE / "sonic_states" / "msn3700.json").read_text()), frozenset()))
    found = switch.state()
    switch.become(refuses="^config load")
    assert "failed: load" in switch.say("apply")
    assert "Ethernet0|3-4" not in switch.state()["running"]["BUFFER_PG"]
    subprocess.run([*FAKE, switch.folder, "--minutes", "5"], check=True)
    assert switch.state()["running"] == found["running"]
    assert {key: fields for key, fields in switch.state()["asic"].items() if fields} == found["asic"]


@pytest.mark.parametrize("line", (HERE / "sonic_states" / "versions.txt").read_text().splitlines())
def test_releases_are_known_by_their_branch_and_vendors_by_their_form(line: str) -> None:
    release, known = line.split()
    variables = yaml.safe_load((HERE.parents[1] / "ansible/roles/switches/vars/sonic.yml").read_text())
    assert bool(re.search(variables["switches_known"], release)) == (known == "yes")
    meanings = [meaning for form, meaning in variables["switches_vendors"].items() if re.search(form, release)]
    assert known == "yes" or len(meanings) == 1


@pytest.mark.proof
@pytest.mark.skipif(not CHECKOUT, reason="ROUNDABOUT_SONIC_BUILDIMAGE names no checkout of sonic-buildimage")
@pytest.mark.parametrize("sku", SKUS)
def test_the_default_configuration_of_a_sku_is_changed_and_undone(sku: str, tmp_path: Path) -> None:
    assert_undone_exactly(start(tmp_path, render_state(Path(str(CHECKOUT)), sku, 4)))
