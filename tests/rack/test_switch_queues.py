# SPDX-License-Identifier: Apache-2.0
"""Queues of a rack's switches in a run's tables. Switches are stand-ins (switch_stand_ins/ssh), made of public samples.

- SONiC: tests/mock_tables/counters_db.json of sonic-utilities (queues, values of Ethernet0:3 and Ethernet4:3, and PFC
  frames of Ethernet0).
- EOS: eos_data of VerifyInterfacesECNCounters in ANTA's unit tests, ShowQueueMonitor of Arista's goeapi (fields of
  LANZ, and the entry in its comment), and the fields of PFC's counters that facebook/DNE-TaaC reads by eAPI.
- Cumulus: NVIDIA's "NVUE command reference" (fields), and public scripts that read them as JSON, with their samples.
"""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from roundabout.runner.hosts.host_group import PortPlace, QueueReader
from roundabout.runner.trial.switch_queues import SwitchQueues, describe_gaps, read_once, sample_switches
from roundabout.testbeds.rack.switch_counters import cumulus, sonic
from roundabout.testbeds.rack.switch_counters.readers import queue_readers
from tests.ansible.switches import write_inventory
from tests.fakes.testbed import SCALE, FakeSite
from tests.fakes.workplace import Workplace

pytestmark = pytest.mark.unit

STAND_INS = Path(__file__).with_name("switch_stand_ins")
PERIOD_S = 0.05
TIMEOUT_S = 30  # of a busy machine


def queue(sent: int, dropped: int, marked: int, watermark: int) -> dict[str, str]:
    """Return a queue of SONiC's COUNTERS, with a field that no column has."""
    return {
        "SAI_QUEUE_STAT_BYTES": str(sent),
        "SAI_QUEUE_STAT_DROPPED_PACKETS": str(dropped),
        "SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS": str(marked),
        "SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES": str(watermark),
        "PFC_WD_STATUS": "operational",
    }


ENABLED = {"FLEX_COUNTER_STATUS": "enable", "POLL_INTERVAL": "1000"}
CONFIG = {f"FLEX_COUNTER_TABLE|{group}": ENABLED for group in sonic.GROUPS}
COUNTERS = {
    "COUNTERS_QUEUE_NAME_MAP": {"Ethernet0:3": "oid:0x15a", "Ethernet0:13": "oid:0x166", "Ethernet4:3": "oid:0x182",
                                "Ethernet40:3": "oid:0x1ff"},
    "COUNTERS_QUEUE_TYPE_MAP": {"oid:0x15a": "SAI_QUEUE_TYPE_UNICAST", "oid:0x166": "SAI_QUEUE_TYPE_MULTICAST",
                                "oid:0x182": "SAI_QUEUE_TYPE_UNICAST", "oid:0x1ff": "SAI_QUEUE_TYPE_UNICAST"},
    "COUNTERS_PORT_NAME_MAP": {"Ethernet0": "oid:0x12", "Ethernet40": "oid:0x13"},
    "COUNTERS:oid:0x12": {"SAI_PORT_STAT_PFC_0_RX_PKTS": "1200", "SAI_PORT_STAT_PFC_3_RX_PKTS": "203",
                          "SAI_PORT_STAT_PFC_3_TX_PKTS": "103"},
    "COUNTERS:oid:0x15a": queue(70, 19, 19, 60),
    "COUNTERS:oid:0x166": queue(88, 89, 89, 18),
    "COUNTERS:oid:0x182": queue(89, 48, 48, 99),
    "COUNTERS:oid:0x1ff": queue(1, 1, 1, 1),
}  # fmt: skip


@pytest.fixture
def switch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the stand-in `sw`, with SONiC's databases."""
    monkeypatch.setenv("PATH", f"{STAND_INS}:{os.environ['PATH']}")
    monkeypatch.setenv("SWITCHES", str(tmp_path / "switches"))
    folder = tmp_path / "switches" / "sw"
    (folder / "bin").mkdir(parents=True)
    write(folder, COUNTERS, CONFIG)
    return folder


def write(switch: Path, counters: dict[str, Any], config: dict[str, Any]) -> None:
    for name, tables in (("COUNTERS_DB", counters), ("CONFIG_DB", config)):
        (switch / "new").write_text(json.dumps(tables))
        (switch / "new").rename(switch / f"{name}.json")


def command(switch: Path, name: str, script: str) -> None:
    """Give a stand-in a command."""
    path = switch / "bin" / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def readers(switch: Path, system: str) -> dict[str, QueueReader | str]:
    """Return the readers of a rack whose switch `tor` is the stand-in."""
    return dict(queue_readers(write_inventory(system, switch.parents[1]), ["tor"], ["s0", "s1"]))


def sample(found: dict[str, QueueReader | str], until: Callable[[SwitchQueues], object]) -> SwitchQueues:
    """Sample the switch until its samples suffice, for at most TIMEOUT_S."""
    into: dict[str, SwitchQueues] = {}
    deadline_s = time.monotonic() + TIMEOUT_S
    with sample_switches(found, into, PERIOD_S):
        while not until(into["tor"]) and time.monotonic() < deadline_s:
            time.sleep(PERIOD_S / 5)
    assert until(into["tor"])
    return into["tor"]


def three(queues: SwitchQueues) -> bool:
    return len(queues.texts) >= 3


def counters(queues: SwitchQueues) -> dict[tuple[str, int], dict[str, int]]:
    """Return the counters in the last answer, by port and queue."""
    return {(each.port, each.queue): dict(each.counters) for each in queues.samples[-1].answer.queues}


def test_sonics_queues_are_read_from_its_databases(switch: Path) -> None:
    queues = sample(readers(switch, "sonic"), three)
    assert counters(queues) == {
        ("Ethernet0", 3): {"tx_bytes": 70, "drops": 19, "marks": 19, "watermark_bytes": 60, "pauses": 203},
        ("Ethernet4", 3): {"tx_bytes": 89, "drops": 48, "marks": 48, "watermark_bytes": 99},
    }
    lacking = ["no SAI_PORT_STAT_PFC_3_RX_PKTS: the switch counts it for some queues only, or for none"]
    assert (list(queues.remarks), queues.fault) == (lacking, None), "of Ethernet4, which has no port counters"
    row = queues.rows()[-1]
    assert (row["link"], row["towards"], row["interface"]) == ("s1", "s1", "Ethernet4")


def test_counters_that_sonic_lacks_or_refreshes_slowly_are_named(switch: Path) -> None:
    """A release without WRED_ECN_QUEUE leaves old marks in the database; 10 s and 60 s are defaults of counterpoll."""
    groups = {f"FLEX_COUNTER_TABLE|{name}": {"FLEX_COUNTER_STATUS": "enable"} for name in ("QUEUE", "QUEUE_WATERMARK")}
    less = COUNTERS["COUNTERS:oid:0x15a"] | {"SAI_QUEUE_STAT_BYTES": "N/A"}
    del less["SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES"]
    types = COUNTERS["COUNTERS_QUEUE_TYPE_MAP"] | {"oid:0x182": "SAI_QUEUE_TYPE_UNICAST_VOQ"}
    write(switch, COUNTERS | {"COUNTERS:oid:0x15a": less, "COUNTERS_QUEUE_TYPE_MAP": types}, groups)
    queues = sample(readers(switch, "sonic"), three)
    assert counters(queues) == {("Ethernet0", 3): {"drops": 19}}
    assert sorted(queues.remarks) == [
        "SAI_QUEUE_STAT_BYTES: found 'N/A', expected a whole number",
        "left out: a queue of type SAI_QUEUE_TYPE_UNICAST_VOQ",
        "no SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES: the switch counts it for some queues only, or for none",
        "no marks: not counted (as root: counterpoll wredqueue enable)",
        "no pauses: not counted (as root: counterpoll port enable)",
        "tx_bytes and drops: new every 10000 ms only (as root: counterpoll queue interval 1000)",
        "watermark_bytes: new every 60000 ms only (as root: counterpoll watermark interval 1000)",
    ]
    assert set(queues.remarks.values()) == {len(queues.samples)}


def test_a_port_without_queues_is_named(switch: Path) -> None:
    write(switch, {}, CONFIG)
    queues = sample(readers(switch, "sonic"), three)
    assert counters(queues) == {}
    assert "Ethernet0: found no queue, expected those of counterpoll queue enable" in queues.remarks


def test_cumulus_queues_are_those_of_nvue(switch: Path) -> None:
    stats = {"tx-frames": 1000, "tx-bytes": 4200000, "tx-uc-buffer-discards": 4, "wred-discards": 5}
    older = {"egress-queue-stats": {"3": stats}, "pfc-stats": {}}
    newer = {
        "egress-queue-stats": {"3": stats | {"ecn-marked-frames": 100}},
        "pfc-stats": {"3": {"rx-pause-frames": 200, "tx-pause-frames": 300}},
    }
    command(switch, "nv", f"[ $3 = swp1 ] && echo '{json.dumps(older)}' || echo '{json.dumps(newer)}'")
    queues = sample(readers(switch, "cumulus"), three)
    assert counters(queues) == {
        ("swp1", 3): {"tx_bytes": 4200000},
        ("swp2", 3): {"tx_bytes": 4200000, "marks": 100, "pauses": 200},
    }
    lacking = ("ecn-marked-frames", "rx-pause-frames")
    assert sorted(queues.remarks) == [f"no {each}: this release or platform does not count it" for each in lacking]


def test_an_answer_of_cumulus_that_is_not_understood_is_named(switch: Path) -> None:
    command(switch, "nv", "[ $3 = swp1 ] && echo 'Error: NVUE is not running' || echo '{\"egress-queue-stats\": []}'")
    queues = sample(readers(switch, "cumulus"), three)
    assert sorted(queues.remarks) == [
        "swp1: found 'Error: NVUE is not running', expected a JSON object",
        "swp2: found no egress-queue-stats, or no object there",
    ]


@pytest.mark.parametrize("pauses", [200, [], {"rx-pause-frames": "many"}])
def test_pauses_of_cumulus_that_are_not_understood_leave_the_other_counters(pauses: object) -> None:
    found = {"egress-queue-stats": {"3": {"tx-bytes": 1, "ecn-marked-frames": 2}}, "pfc-stats": {"3": pauses}}
    queues, remarks = cumulus.parse(f"port swp1\n{json.dumps(found)}", {"swp1": PortPlace("L1", "tor1")})
    assert [each.counters for each in queues] == [{"tx_bytes": 1, "marks": 2}]
    assert remarks


def pauses(received: object) -> str:
    counts = {"3": {"rxFrames": received, "txFrames": 300}, "4": {"rxFrames": 0, "txFrames": 0}}
    return json.dumps({"interfaces": {"Ethernet1": {"priorities": counts}}})


def eos(lengths: str, paused: str = pauses(200)) -> str:
    """Return a CLI that answers `show queue-monitor length` and `show priority-flow-control` with these texts."""
    return f"""
while read -r line; do
  case $line in
    "show qos"*json) echo '{{"intfQueueCounters": {{"Ethernet1": {{"queueCounters": {{"0": "-", "3": "2"}}}}}}}}';;
    "show queue-monitor"*json) echo '{lengths}';;
    "show priority-flow-control counters detail"*json) echo '{paused}';;
    "show version"*) echo "Software image version: 4.30.0F";;
  esac
done
"""


def lanz(**more: Any) -> str:
    entry = {"entryType": "P", "durationUsecs": 1000000, "trafficClass": 3}
    entries = [{**entry, "interface": port, "queueLength": length} for port, length in
               (("Ethernet1", 41904), ("Ethernet1", 20000), ("Ethernet24/1", 90000))]  # fmt: skip
    return json.dumps({"lanzEnabled": True, "bytesPerTxmpSegment": 0, "entryList": entries, **more})


def test_eos_marks_and_lengths_are_read_of_queues_that_count_them(switch: Path) -> None:
    command(switch, "cli", eos(lanz()))
    queues = sample(readers(switch, "eos"), three)
    assert counters(queues) == {
        ("Ethernet1", 3): {"marks": 2, "watermark_bytes": 41904, "pauses": 200},
        ("Ethernet1", 4): {"pauses": 0},
    }
    assert any(
        each.startswith("no marks of Ethernet1 queue 0: not counted (it needs random-") for each in queues.remarks
    )
    assert "Ethernet2" in " ".join(queues.remarks)


@pytest.mark.parametrize(("lengths", "remark"), [
    (lanz(lanzEnabled=False), "no watermark_bytes: not counted (it needs queue-monitor length)"),
    (lanz(entryList={"Ethernet1": 3}), "entryList: found \"{'Ethernet1': 3}\", expected a list of objects"),
    (lanz(entryList=[3]), "entryList: found '[3]', expected a list of objects"),
    (lanz(bytesPerTxmpSegment=480), "no watermark_bytes: this platform counts segments of 480 bytes at most"),
    ("% Invalid input (privileged mode required)",
     "found '% Invalid input (privileged mode required)', expected an answer: the user of switches may lack the "
     "privilege (enable)"),
])  # fmt: skip
def test_lengths_that_eos_does_not_count_or_refuses_are_named(switch: Path, lengths: str, remark: str) -> None:
    command(switch, "cli", eos(lengths))
    queues = read_once(readers(switch, "eos"))["tor"]
    assert counters(queues) == {("Ethernet1", 3): {"marks": 2, "pauses": 200}, ("Ethernet1", 4): {"pauses": 0}}
    assert remark in queues.remarks
    assert len(queues.texts) == 1 and remark in str(describe_gaps({"tor": queues}))


@pytest.mark.parametrize(("paused", "remark"), [
    (pauses("many"), "Ethernet1 priority 3 rxFrames: found 'many', expected a whole number"),
    ('{"interfaces": {"Ethernet1": 3}}', "show priority-flow-control counters detail: found no Ethernet1"),
    ("% Invalid input", "show priority-flow-control counters detail: found no interfaces, or no object there"),
])  # fmt: skip
def test_pauses_that_eos_does_not_count_leave_the_other_counters(switch: Path, paused: str, remark: str) -> None:
    command(switch, "cli", eos(lanz(), paused))
    queues = read_once(readers(switch, "eos"))["tor"]
    assert counters(queues)["Ethernet1", 3] == {"marks": 2, "watermark_bytes": 41904}
    assert any(each.startswith(remark) for each in queues.remarks)


def test_a_switch_that_is_not_read_is_named_and_ends_nothing(switch: Path) -> None:
    switch.rename(switch.with_name("moved"))
    queues = sample(readers(switch, "sonic"), lambda queues: queues.fault)
    assert queues.fault == "ssh: connect to host sw port 22: Connection refused"
    into: dict[str, SwitchQueues] = {}
    junos = readers(switch, "junos")
    assert junos == {"tor": "found junos; Roundabout reads queues of cumulus, eos, sonic"}
    with sample_switches(junos, into, PERIOD_S):
        pass
    assert into["tor"].as_json() == {"samples": 0, "period_median_ms": None, "fault": junos["tor"], "remarks": {}}
    assert describe_gaps(into) == f"queues of switches: tor: {junos['tor']}"


def test_a_switch_that_hangs_is_left_at_the_end(switch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roundabout.runner.trial.switch_queues.END_TIMEOUT_S", 0.1)
    command(switch, "cli", "echo $$ > pid; exec sleep 60")
    into: dict[str, SwitchQueues] = {}
    deadline_s = time.monotonic() + TIMEOUT_S
    with sample_switches(readers(switch, "eos"), into, PERIOD_S):
        while not ((switch / "pid").exists() and (switch / "pid").read_text()) and time.monotonic() < deadline_s:
            time.sleep(PERIOD_S)
    assert into["tor"].fault == "no answer"
    assert not Path("/proc", (switch / "pid").read_text().strip()).exists()


def test_a_runs_tables_have_the_queues_of_switches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = json.dumps({"groups": dict.fromkeys(sonic.GROUPS, ENABLED), "queues": {
        "Ethernet0:3": {"type": "SAI_QUEUE_TYPE_UNICAST",
                        "counters": {**queue(70, 19, 19, 60), "SAI_PORT_STAT_PFC_3_RX_PKTS": "203"}}
    }})  # fmt: skip
    script = f"while read -r _; do echo '{answer}'; echo done; done"
    reader = sonic.queue_reader(["sh", "-c", script], {"Ethernet0": PortPlace("L1", "tor1")})
    found = {"tor0": reader, "tor1": "unmanaged, so that it is not contacted"}
    monkeypatch.setattr(FakeSite, "queue_readers", lambda _: found)
    work = Workplace(tmp_path)
    run = work.start()
    (trial,) = run.trials()
    assert trial["valid"], trial["reason"]
    rows = run.table("port_queues").to_pylist()
    assert {(row["host"], row["link"], row["interface"], row["towards"], row["queue"]) for row in rows} == {
        ("tor0", "L1", "Ethernet0", "tor1", 3)
    }
    assert {(row["marks"], row["drops"], row["backlog_bytes"], row["pauses"]) for row in rows} == {(19, 19, None, 203)}
    assert {row["watermark_bytes"] for row in rows} == {60 * SCALE}
    starts = run.table("iterations")["start_ns"].to_pylist()
    assert min(starts) - 30e9 < rows[0]["controller_ns"] < max(starts) + 30e9
    record = json.loads((run.path / "trials" / trial["trial"] / "trial.json").read_text())
    assert record["switch_queues"]["tor0"] | {"samples": 0, "period_median_ms": 0} == {
        "samples": 0, "period_median_ms": 0, "fault": None, "remarks": {}
    }  # fmt: skip
    assert len(rows) == record["switch_queues"]["tor0"]["samples"] > 0
    assert work.notes.notices == ["queues of switches: tor1: unmanaged, so that it is not contacted"]
