# SPDX-License-Identifier: Apache-2.0
"""Tables of SONiC switches that need a refusal or a note before a change."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Environment

pytestmark = pytest.mark.unit

CASES = Path(__file__).parent
SONIC = CASES.parents[1] / "ansible/roles/switches/templates/sonic"
PORTS = ("Ethernet0", "Ethernet4", "Ethernet8")
FACTS = {"mtu_bytes": 1500, "ports": [{"port": port, "speed_gbps": 100} for port in PORTS[:2]]}
PLAN = Environment(autoescape=False).from_string((SONIC / "plan.j2").read_text()).render(switches_facts=FACTS)


def plan(folder: Path, found: dict[str, Any]) -> tuple[str, list[str]]:
    """Return the refusal of the plan, and the lines of differences."""
    (folder / "found").write_text(json.dumps(found))
    (folder / "wanted").write_text((CASES / "sonic-speed-100g/wanted").read_text())
    argv = [sys.executable, "-S", "-c", PLAN, str(folder), "3"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    if done.returncode:
        return done.stdout.strip(), []
    return "", (folder / "differs").read_text().splitlines()


def case(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((CASES / name / "found").read_text())
    return found


REFUSED = {
    "sonic-port-without-speed": "PORT|Ethernet0: found no speed, expected one in Mbit/s, "
    "from which the headroom follows",
    "sonic-multi-asic-host": "DEVICE_METADATA|localhost: found asic_name asic0, expected a switch of one ASIC, "
    "since tables of several are in namespaces",
    "sonic-speed-100g": "PORT|Ethernet0: found speed 100G, expected one in Mbit/s, from which the headroom follows",
    "sonic-cable-length-name": "CABLE_LENGTH|AZURE Ethernet0: found none, expected what `config qos reload` makes",
}


@pytest.mark.parametrize("name", REFUSED)
def test_tables_that_cannot_be_changed_are_refused(name: str, tmp_path: Path) -> None:
    assert plan(tmp_path, case(name)) == (f"failed: {REFUSED[name]}", [])


def sound() -> dict[str, Any]:
    """Return the tables of a switch that is changed without a refusal."""
    found = case("sonic-other-lossless-classes")
    del found["PORT_QOS_MAP"]
    return found


SEVERAL = [
    ("BUFFER_PG", "Ethernet4,Ethernet0|3-4", "Ethernet0|3"),
    ("QUEUE", "Ethernet8,Ethernet4|6", "Ethernet4|6"),
    ("PORT_QOS_MAP", "Ethernet0, Ethernet4", "Ethernet0"),
    ("PFC_WD", "Ethernet8,Ethernet4", "Ethernet4"),
    ("QUEUE", "Ethernet4|0-7", "Ethernet4|3"),
]


@pytest.mark.parametrize(("table", "entry", "mine"), SEVERAL)
def test_an_entry_that_includes_others_is_split_and_joined_again(
    table: str, entry: str, mine: str, tmp_path: Path
) -> None:
    refusal, _ = plan(tmp_path, sound() | {table: {entry: {"profile": "theirs"}}})
    assert refusal == ""
    assert f"DEL '{table}|{entry}'" in (tmp_path / "prepare.sh").read_text()
    assert mine in json.loads((tmp_path / "change.json").read_text())[table]
    assert f"HSET '{table}|{entry}' profile theirs" in (tmp_path / "undo.sh").read_text()


def test_a_port_outside_the_inventory_keeps_its_part_of_a_split_entry(tmp_path: Path) -> None:
    found = case("sonic-ports-in-one-key")
    assert plan(tmp_path, found)[0] == ""
    change = json.loads((tmp_path / "change.json").read_text())
    prepare, undo = ((tmp_path / f"{name}.sh").read_text().splitlines() for name in ("prepare", "undo"))
    (deleted,) = (line for line in prepare if line.startswith("db DEL "))
    for table, numbers in (("QUEUE", ["3"]), ("BUFFER_PG", ["3", "4"])):
        ((entry, fields),) = found[table].items()
        parts = [f"Ethernet8|{number}" for number in numbers]
        assert all(f"'{table}|{each}'" in deleted for each in (entry, *parts))
        assert [change[table][part] for part in parts] == [fields] * len(parts)
        (joined,) = (place for place, line in enumerate(undo) if line.startswith(f"db HSET '{table}|{entry}' "))
        assert undo[joined].split()[3:] == [word for field in fields.items() for word in field]
        assert all(any(f"'{table}|{part}'" in line for line in undo[:joined] if "DEL" in line) for part in parts)


@pytest.mark.parametrize("entry", ["Ethernet4|3", "Ethernet8,Ethernet12|3-4", "Ethernet0,Ethernet4|0-2"])
def test_an_entry_for_other_ports_or_numbers_is_kept(entry: str, tmp_path: Path) -> None:
    refusal, differs = plan(tmp_path, sound() | {"QUEUE": {entry: {}}})
    assert (refusal, differs != []) == ("", True)


def test_priorities_that_become_lossy_are_named_first(tmp_path: Path) -> None:
    _, differs = plan(tmp_path, case("sonic-other-lossless-classes"))
    assert differs[:3] == [
        f"differs PORT_QOS_MAP: priority {priority} of Ethernet0, Ethernet4 would no longer be lossless"
        for priority in (2, 4, 6)
    ]


@pytest.mark.parametrize(
    ("enabled", "lost"), [(("3", "3"), []), (("", "3,4"), ["4 of Ethernet4"]), (("5", "3"), ["5 of Ethernet0"])]
)
def test_only_priorities_that_become_lossy_are_named(enabled: tuple[str, str], lost: list[str], tmp_path: Path) -> None:
    maps = {port: {"pfc_enable": each} for port, each in zip(PORTS, enabled, strict=False)}
    _, differs = plan(tmp_path, sound() | {"PORT_QOS_MAP": maps})
    assert [line for line in differs if line.endswith("would no longer be lossless")] == [
        f"differs PORT_QOS_MAP: priority {each} would no longer be lossless" for each in lost
    ]


def test_a_host_database_without_ports_is_not_advised_to_reload(tmp_path: Path) -> None:
    found = sound() | {"PORT": {}, "BUFFER_POOL": {}}
    assert plan(tmp_path, found)[0] == "failed: PORT|Ethernet0: found none, expected the inventory's port"
