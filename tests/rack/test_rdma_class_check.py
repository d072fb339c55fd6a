# SPDX-License-Identifier: Apache-2.0
"""`verify --traffic`: on a fabric of stand-ins that is as it should be, and on others, each with one fault."""

import json
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import pytest
import typer

from roundabout.checks.acceptance.limits import read_limits
from roundabout.checks.acceptance.rack import rdma_bandwidth_verdicts
from roundabout.cli.rack import verify
from roundabout.core.errors import RoundaboutError, UsageError
from roundabout.models.packets.structures import PS_PER_MS
from roundabout.models.packets.transports import reaction_plan, transport_values
from roundabout.runner.hosts.connections import LocalConnection
from roundabout.runner.hosts.host_group import Host
from roundabout.runner.hosts.playbooks import Result
from roundabout.runner.hosts.programs import Program
from roundabout.settings import settings
from roundabout.testbeds.rack import (
    bandwidth_check,
    dcqcn_check,
    provider as rack_provider,
    rack_lease,
    rdma_class_check,
)
from roundabout.testbeds.rack.bandwidth_check import PairFigures
from roundabout.testbeds.rack.dcqcn_check import Owner, applies_timer
from roundabout.testbeds.rack.examination import Finding
from roundabout.testbeds.rack.inventory import LosslessClasses
from roundabout.testbeds.rack.rdma_class_check import Difference, RdmaEnd, Row
from tests.packets.networks import PACKET, PS_PER_US, Tree, change_plan
from tests.packets.roce_jobs import STAR, dcqcn
from tests.running import MAY_RAISE_LIMITS, load_program

pytestmark = pytest.mark.unit

STAND_IN = Path(__file__).with_name("stand_ins") / "perftest.py"
NAMES = ("s0", "s1", "s2")
TREES = load_program(Path(__file__).parents[1] / "settings/stand_ins/trees.py")
Ends = Callable[..., list[RdmaEnd]]


def free_port() -> int:
    """The first of a few on which no program listens, most likely."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
def fabric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ends:
    """Three hosts of this machine; what is given of one replaces how it behaves."""
    for tool in ("ib_write_bw", "ib_write_lat", "ethtool"):
        path = tmp_path / "bin" / tool
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!{sys.executable} -SE\n{STAND_IN.read_text()}")
        path.chmod(0o755)
    # The stand-ins' folder is root's alone.
    (tmp_path / "bin/setpriv").write_text('#!/bin/sh\nwhile [ "${1#--}" != "$1" ]; do shift; done; exec "$@"\n')
    (tmp_path / "bin/setpriv").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    monkeypatch.setenv("FABRIC", str(tmp_path))
    monkeypatch.setattr(rdma_class_check, "DEVICES", str(tmp_path / "infiniband"))
    monkeypatch.setattr(rdma_class_check, "FIRST_PORT", free_port())
    monkeypatch.setattr(rdma_class_check, "TEST_TIMEOUT_S", 120)

    def build(**others: dict[str, Any]) -> list[RdmaEnd]:
        hosts, ends = {}, []
        for number, name in enumerate(NAMES):
            device, address = f"mlx5_{number}", f"127.0.0.{number + 1}"
            usual = {"dscp_to_prio": {"26": 3}, "marked": True, "reacts": True, "cnp_prio": 6, "version": "6.23"}
            hosts[device] = {"nic": f"eth{number}", "address": address, **usual, **others.get(name, {})}
            folder = tmp_path / "infiniband" / device / "ports/1/hw_counters"
            folder.mkdir(parents=True)
            counters = {"np_cnp_sent": 7, "rp_cnp_handled": 7}
            (tmp_path / f"{device}.counters").write_text(json.dumps(counters))
            for counter, value in counters.items():
                (folder / counter).write_text(f"{value}\n")
            host = Host(name, name, address, 8, f"eth{number}", Path("/opt"))
            ends.append(RdmaEnd(host, LocalConnection(name), device, 3))
        (tmp_path / "fabric.json").write_text(json.dumps(hosts))
        return ends

    return build


def test_a_fabric_that_is_as_it_should_be(fabric: Ends, tmp_path: Path) -> None:
    rows = list(rdma_class_check.check_traffic([fabric()], LosslessClasses()))
    assert [(row.source, row.to) for row in rows] == [
        ("s0", "s1"),
        ("s1", "s2"),
        ("s2", "s0"),
        ("s1, s2", "s0"),
        ("all servers",) * 2,
    ]
    assert [row.wrong for row in rows] == [()] * 5
    assert [row.gbps for row in rows] == [90, 90, 90, 180, None]
    assert rows[-1].found == "2000 handled, 2000 sent"
    tested = f"-x 3 -p {rdma_class_check.FIRST_PORT} --tclass=106 -D 3 -F --report_gbits --output=bandwidth"
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls[:2] == [
        f"ib_write_bw --bind_source_ip 127.0.0.2 -d mlx5_1 {tested}",
        f"ib_write_bw --bind_source_ip 127.0.0.1 -d mlx5_0 {tested} 127.0.0.2",
    ]


def test_a_server_alone_on_its_rail_is_not_measured(fabric: Ends) -> None:
    *pair, alone = fabric()
    rows = list(rdma_class_check.check_traffic([pair, [alone]], LosslessClasses()))
    assert [(row.source, row.to) for row in rows] == [("s0", "s1"), ("s1", "s0"), ("s2", "s2"), ("all servers",) * 2]
    assert rows[2].unmeasured == "no other server has a NIC on the rail of s2"


@pytest.mark.parametrize(("count", "fault", "expected"), [
    (3, {"s0": {"dscp_to_prio": {}, "marked": False}}, {
        ("s0", "s1"): [("s0 tx_prio3_bytes", "16875000000 at least", "0, and 33750009000 in other priorities")],
        ("s2", "s0"): [("s0 rx_prio3_bytes", "16875000000 at least", "0, and 33750000000 in other priorities")],
        ("s1, s2", "s0"): [
            ("s0 np_cnp_sent", "1 at least", "0"), ("s0 tx_prio6_packets", "1 at least", "0"),
            ("s1 rp_cnp_handled", "1 at least", "0"), ("s2 rp_cnp_handled", "1 at least", "0"),
        ],
    }),
    (2, {"s1": {"version": "5.6"}}, {
        ("s0", "s1"): [("s0 ib_write_bw", "a bandwidth",
                        "Current implementation is not compatible with versions older than 5.70")],
        ("s1", "s0"): [("s1 ib_write_bw", "a bandwidth", "Failed to exchange data between server and clients")],
    }),
], ids=["no class for the DSCP, and no marks", "versions"])  # fmt: skip
def test_each_fault_is_named(
    fabric: Ends, count: int, fault: dict[str, dict[str, Any]], expected: dict[Any, Any]
) -> None:
    rows = list(rdma_class_check.check_traffic([fabric(**fault)[:count]], LosslessClasses()))
    assert {(row.source, row.to): list(row.wrong) for row in rows if row.wrong} == expected


@pytest.mark.parametrize(("sent", "handled", "wrong", "unmeasured"), [
    ([5, 0], [0, 5], None, ""),
    ([5, 0], [2, 2], None, ""),  # CNPs can be lost
    ([5, 0], [3, 3], "6: forged, or from outside the inventory", ""),
    ([5, None], [3, 3], None, "not all NICs count np_cnp_sent and rp_cnp_handled"),
    ([None, None], [None, None], None, "not all NICs count np_cnp_sent and rp_cnp_handled"),
])  # fmt: skip
def test_cnps_that_were_handled_but_not_sent_are_reported(
    sent: list[int | None], handled: list[int | None], wrong: str | None, unmeasured: str
) -> None:
    named = [{"np_cnp_sent": one, "rp_cnp_handled": other} for one, other in zip(sent, handled, strict=True)]
    risen = [{name: value for name, value in each.items() if value is not None} for each in named]
    row = rdma_class_check.cnp_row(risen)
    assert [each.found for each in row.wrong] == ([wrong] if wrong else [])
    assert row.unmeasured == unmeasured


def figures_of(ends: list[RdmaEnd]) -> dict[tuple[str, str], PairFigures]:
    measured = bandwidth_check.measure_pairs(ends, 106, lambda _: "leaf0")
    return {(each.source.host.name, each.to.host.name): each for each in measured}


def test_each_nic_writes_to_those_of_other_servers(fabric: Ends, tmp_path: Path) -> None:
    found = figures_of(fabric(s1={"needs_pairs": 4, "latency_us": 40.0})[:2])
    assert {pair: (each.gbps, each.latency_us, each.failed) for pair, each in found.items()} == {
        ("s0", "s1"): ({1: 90, 2: 90, 4: 90}, 2.5, ()),
        ("s1", "s0"): ({1: 45, 2: 45, 4: 90}, 40, ()),
    }
    calls = (tmp_path / "calls").read_text()
    assert re.findall("-q (.) -D 3", calls) == ["1", "1", "2", "2", "4", "4"] * 2


def test_a_slow_nic_is_named_with_its_direction(fabric: Ends) -> None:
    ends = fabric()
    pairs = [
        PairFigures(one, other, dict.fromkeys((1, 2, 4), 45.0 if one is ends[1] else 90.0), 2.5, ())
        for one, other in permutations(ends, 2)
    ]
    pairs[0] = pairs[0]._replace(latency_us=40.0)
    pairs[1] = pairs[1]._replace(failed=(Difference("s0 ib_write_bw", "a bandwidth", "it ended with 1"),))
    verdicts = rdma_bandwidth_verdicts(pairs, lambda *_: 91.8, read_limits(None))
    assert [(each.of, each.name, each.verdict) for each in verdicts] == [
        ("s0 to s2", "s0 ib_write_bw", "fail"),
        *[("NIC of s1, sending", "bandwidth", "fail")] * 3,
        ("s0 to s1", "write_latency_us", "fail"),
    ]
    assert verdicts[1].found == "0.4902 of 91.8 Gbit/s, the line rate less headers, by 1 queue pair"


def test_counters_that_must_not_change_are_read_from_nic_fec_and_link(fabric: Ends, tmp_path: Path) -> None:
    """FEC's statistics are laid out as in the message of Linux commit be85dbfeb37c."""
    (end,) = fabric(s0={"uncorrectable": 145})[:1]
    folder = tmp_path / "infiniband/mlx5_0/ports/1/hw_counters"
    (folder / "out_of_sequence").write_text("7\n")
    counters = end.counters()
    assert (counters["corrected_blocks"], counters["np_cnp_sent"]) == (256, 7)
    judged = bandwidth_check.unchanged_counters(counters)
    judged.pop("carrier_changes", None)  # of this machine's own eth0
    assert judged == {"uncorrectable_blocks": 145, "out_of_sequence": 7}


@pytest.mark.parametrize(("name", "counts"), [
    ("rx_discards_phy", True), ("tx_discards_phy", True), ("rx_prio3_discards", True), ("out_of_sequence", True),
    ("local_ack_timeout_err", True), ("packet_seq_err", True), ("rx_crc_errors_phy", True),
    ("rx_pcs_symbol_err_phy", True), ("carrier_changes", True), ("link_down_events_phy", True),
    ("corrected_blocks", False), ("rx_corrected_bits_phy", False), ("np_cnp_sent", False), ("rx_prio3_pause", False),
])  # fmt: skip
def test_counters_that_must_not_change(name: str, counts: bool) -> None:
    assert bool(bandwidth_check.unchanged_counters({name: 1})) == counts


def test_a_server_that_does_not_listen_says_why(fabric: Ends) -> None:
    with pytest.raises(RoundaboutError, match="s1: ib_write_bw: found Couldn't allocate context, expected it to"):
        list(rdma_class_check.check_traffic([fabric(s1={"broken": True})], LosslessClasses()))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to give up")
@pytest.mark.parametrize(("option", "bound"), [
    ("--bind_source_ip  Source IP", "--bind_source_ip 10.10.0.1 "), ("--source_ip  Source IP", "")
], ids=["23.07", "4.5"])  # fmt: skip
def test_ib_write_bw_runs_as_nobody_at_the_tested_address_where_it_can(option: str, bound: str) -> None:
    with tempfile.TemporaryDirectory() as folder:  # all users can read it, unlike pytest's folders
        program = Path(folder, "ib_write_bw")
        program.parent.chmod(0o755)
        report = 'echo "$* $(id -u)"; grep -E "CapEff|NoNewPrivs|Max locked" /proc/self/status /proc/self/limits'
        program.write_text(f'#!/bin/sh\nif [ "$1" = --help ]; then echo "{option}"; exit 1; fi\n{report}\n')
        program.chmod(0o755)
        host = Host("s0", "s0", "10.10.0.1", 24, "eth0", Path("/opt"))
        command = rdma_class_check.perftest_command(RdmaEnd(host, LocalConnection(), "mlx5_0", 3), 18515, 106)
        environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    words, *status = done.stdout.splitlines()
    assert words.startswith(f"{bound}-d mlx5_0 -x 3 -p 18515 --tclass=106 -D 3 ")
    assert words.endswith(" 65534")
    assert [line.split(":", 1)[1].split()[-1] for line in status[:2]] == ["0" * 16, "1"]
    own = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    assert status[2].split()[3] == ("unlimited" if MAY_RAISE_LIMITS else str(own))


def test_bytes_in_other_priorities_are_wrong_where_they_are_many() -> None:
    risen = {"tx_prio3_bytes": 1000, "tx_prio0_bytes": 6, "tx_prio7_bytes": 4}
    assert not list(rdma_class_check.check_priorities("s0", "tx", risen, 3, 900))
    (wrong,) = rdma_class_check.check_priorities("s0", "tx", risen | {"tx_prio7_bytes": 5}, 3, 900)
    assert wrong == ("s0 tx in other priorities", "10 bytes at most", "11")


def test_a_nic_without_the_counter_is_said_to_have_none() -> None:
    (wrong,) = rdma_class_check.check_priorities("s0", "rx", {}, 3, 900)
    assert wrong == ("s0 rx_prio3_bytes", "900 at least", "no such counter")


def test_an_interrupted_traffic_check_leaves_no_listener(fabric: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = fabric()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    def wait_without_killing(program: Program, *_: object) -> None:  # it ends with its standard input
        give_up = time.monotonic() + 120
        while not program.has_ended and time.monotonic() < give_up:
            time.sleep(0.05)

    monkeypatch.setattr(rdma_class_check.Program, "finish", wait_without_killing)
    monkeypatch.setattr(rdma_class_check, "call", interrupted)  # which checks whether the server listens
    with pytest.raises(KeyboardInterrupt):
        list(rdma_class_check.check_traffic([ends], LosslessClasses()))
    with socket.socket() as probe:
        assert probe.connect_ex((ends[1].host.address, rdma_class_check.FIRST_PORT)) != 0


FOUND = [
    Finding("ssh", True, "answers", ""), Finding("RDMA device", True, "mlx5_0", ""),
    Finding("GID", True, "3 is 10.10.0.1 by RoCE v2", ""), Finding("ib_write_bw", True, "found", ""),
]  # fmt: skip


@pytest.mark.parametrize("lacking", range(4))
def test_a_missing_rdma_requirement_is_named_with_doctors_hint(fabric: Ends, lacking: int) -> None:
    host = fabric()[0].host
    assert rdma_class_check.rdma_end(host, LocalConnection(), FOUND)[2:4] == ("mlx5_0", 3)
    found = [each._replace(good=number != lacking, mend="mend it") for number, each in enumerate(FOUND)]
    with pytest.raises(RoundaboutError, match=f"s0: {found[lacking].name}: ") as raised:
        rdma_class_check.rdma_end(host, LocalConnection(), found[: lacking + 1])
    assert raised.value.hint == "mend it"


@pytest.mark.parametrize("name", ["RDMA device", "GID"])
def test_a_nic_without_rdma_beside_others_is_named(name: str) -> None:
    poor = [each._replace(good=False, found="none", mend="mend it") if each.name == name else each for each in FOUND]
    rdma_class_check.refuse_unequal({"s0": FOUND, "s1": FOUND})
    rdma_class_check.refuse_unequal({"s0": poor[:2], "s1": poor[:2]})  # none has it
    with pytest.raises(rdma_class_check.UnequalRdmaError, match=f"s1: {name}: found none, expected one") as raised:
        rdma_class_check.refuse_unequal({"s0": FOUND, "s1": poor})
    assert raised.value.hint == "mend it" and raised.value.exit_code == 1


def test_verify_shows_a_row_a_pair_and_ends_with_1_where_any_is_wrong(
    inventory_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [Row("s0", "s1", 90.0, ()), Row("s1", "s0", 0.0, (rdma_class_check.Difference("s1 tx", "5", "0"),))]
    leased: list[str] = []
    restored: list[RdmaEnd] = []

    def check(_ends: list[RdmaEnd], _lossless: LosslessClasses) -> list[Row]:
        leased.extend(path.name for path in (tmp_path / "leases").iterdir())
        return rows

    def check_timers(_ends: object, rates: dict[str, float], _tos: int, owner: Owner) -> list[Row]:
        (journal,) = (tmp_path / "journals").iterdir()
        (entry,) = json.loads(journal.read_text())["pending"]
        assert (entry["kind"], entry["owner"], entry["hosts"]) == ("settings", owner.name, list(rates))
        return [Row("s1", "s2", None, (), "s1 T", unmeasured="it holds one T alone")]

    monkeypatch.setattr(verify, "run", lambda *_: Result({}, {"s0": {}}, 1.0))
    monkeypatch.setattr(verify, "undo_when_ended", lambda: None)
    monkeypatch.setattr(rack_lease, "LEASES", str(tmp_path / "leases"))
    monkeypatch.setattr(rack_provider, "connect_machine", lambda *_: None)
    monkeypatch.setattr(rack_provider, "verify_host_keys", lambda *_: None)
    monkeypatch.setattr(rack_provider, "SshConnection", lambda host, _connection: LocalConnection(host))
    monkeypatch.setattr(rack_provider, "query_capabilities", lambda _, hosts: dict.fromkeys(hosts, FOUND))
    monkeypatch.setattr(rack_provider, "check_traffic", check)
    monkeypatch.setattr(rack_provider, "check_timers", check_timers)
    monkeypatch.setattr(rack_provider, "STATE", tmp_path / "state")
    monkeypatch.setattr(rack_provider, "JOURNALS", tmp_path / "journals")
    monkeypatch.setattr(Owner, "restore", lambda _owner, ends: restored.extend(ends))
    for as_json in (False, True):
        with pytest.raises(typer.Exit) as ended:
            verify.command(str(inventory_file), traffic=True, as_json=as_json)
        assert ended.value.exit_code == 1
    *shown, last_line = capsys.readouterr().out.splitlines()
    assert [" ".join(line.split()) for line in shown[-3:]] == [
        "s0 s1 90.0 all in their classes",
        "s1 s0 0.0 s1 tx: expected 5, found 0",
        "s1 s2 s1 T: not measured: it holds one T alone",
    ]
    assert len(restored) == 2 * 12
    assert not (tmp_path / "journals").exists()
    assert json.loads(last_line)["traffic"][1]["wrong"] == [{"what": "s1 tx", "expected": "5", "found": "0"}]
    assert {"host gpu0.example.org", "switch sonic0.example.org", "port sonic1.example.org Ethernet48"} <= {*leased}


def test_a_lab_has_no_rdma() -> None:
    with pytest.raises(UsageError, match="found lab:mine, expected an inventory of a rack"):
        verify.command("lab:mine", traffic=True)


# --- DCQCN's T

SETTINGS = """\
import runpy, sys
sys.argv += ["--root", {root!r}]
runpy.run_path({program!r}, run_name="__main__")
"""
Timers = Callable[..., tuple[Iterator[Row], list[Path]]]


@pytest.fixture
def timers(fabric: Ends, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Timers:
    """The rows of the test of T with three servers, whose settings program runs on trees of files, and these trees."""
    monkeypatch.setattr(dcqcn_check, "RUNS", 1)

    def check(
        line_rates: tuple[float, ...] = (50, 50, 50), **others: dict[str, Any]
    ) -> tuple[Iterator[Row], list[Path]]:
        roots, ends = [tmp_path / name for name in NAMES], []
        files = [root / TREES.CC_PARAMS / "rp_time_reset" for root in roots]
        given = {
            name: {"applies": True, "t_file": str(file), **others.get(name, {})}
            for name, file in zip(NAMES, files, strict=True)
        }
        for number, (root, end) in enumerate(zip(roots, fabric(**given), strict=True)):
            TREES.build("connectx-5-inbox", root)
            (root / "sys/class/net/eth2").rename(root / f"sys/class/net/eth{number}")
            program = root / "opt/bin/settings.py"
            program.parent.mkdir(parents=True)
            program.write_text(SETTINGS.format(root=str(root), program=settings.__file__))
            if not given[NAMES[number]].get("provisioned", True):
                program.unlink()
            if not given[NAMES[number]].get("writable", True):
                shutil.rmtree(root / TREES.CC_PARAMS)
            ends.append(end._replace(host=replace(end.host, prefix=root / "opt")))
        owner = Owner("verify-1", tmp_path / "state")
        rates = dict(zip(NAMES, line_rates, strict=True))
        return dcqcn_check.check_timers(ends, rates, 106, owner), files

    return check


def test_a_nic_that_does_not_apply_t_is_named_and_the_others_pass(timers: Timers, tmp_path: Path) -> None:
    checked, files = timers(s1={"applies": False})
    rows = list(checked)
    assert [(row.source, row.to, row.what) for row in rows] == [
        ("s0, s2", "s1", "s0 T"), ("s1, s0", "s2", "s1 T"), ("s2, s1", "s0", "s2 T")
    ]  # fmt: skip
    assert [bool(row.wrong) for row in rows] == [False, True, False]
    assert rows[0].found == "with T 100 us (90 to 90); 9 with T 20000 us (9 to 9)"
    (wrong,) = rows[1].wrong
    assert wrong.what == "s1 T"
    assert wrong.found.endswith(": this NIC does not apply T")
    assert [file.read_text() for file in files] == ["300\n"] * 3
    assert all((file.parent / "rp_byte_reset").read_text() == "32767\n" for file in files)
    assert (tmp_path / "state/journal.jsonl").read_text() == ""


@pytest.mark.parametrize(("rates", "fault", "reason"), [
    ((50, 50, 50), {"writable": False}, "s0: .* dcqcn eth0 T_us: found none of .*cc_params"),
    ((50, 50, 50), {"provisioned": False}, "s0: .*settings.py': .*No such file"),
    ((50, 50, 50), {"reacts": False}, "s0 handled no CNPs, so that T could not act"),
    ((50, 50, 100), {}, "s0 needs two other servers on links of 50 Gbit/s"),
])  # fmt: skip
def test_a_nic_whose_t_cannot_be_tested_is_named_with_the_reason(
    timers: Timers, rates: tuple[float, ...], fault: dict[str, Any], reason: str
) -> None:
    row = next(timers(rates, s0=fault)[0])
    assert re.match(reason, row.unmeasured)
    assert row.wrong == ()


@pytest.mark.parametrize(("short", "long", "applies"), [
    ([24.0, 25.1, 24.4], [2.1, 1.9, 2.0], True),
    ([24.0, 25.1, 24.4], [24.1, 23.0, 23.5], False),  # lower on average, and within the scatter
    ([24.0, 24.0, 24.0], [24.0, 24.0, 24.0], False),
    ([2.1, 1.9, 2.0], [24.0, 25.1, 24.4], False),  # higher with a longer T is no reaction
])  # fmt: skip
def test_rates_must_differ_by_more_than_they_scatter(short: list[float], long: list[float], applies: bool) -> None:
    assert applies_timer({100: short, 20000: long}) == applies


def test_one_of_252_nics_without_reaction_passes() -> None:
    """The order of runs is random: each choice of five rates of ten for the short T is as likely."""
    rates = range(10)
    passed = [
        applies_timer({100: chosen, 20000: [each for each in rates if each not in chosen]})
        for chosen in combinations(rates, dcqcn_check.RUNS)
    ]
    assert (sum(passed), len(passed)) == (1, 252)


def modelled_gbps(t_us: int, seed: int) -> float:
    """Return the rate of a sender beside another one with NVIDIA's defaults, by the packet-level model; links of 8."""
    ours = {"T_ps": t_us * PS_PER_US, "byte_counter_bytes": 0}
    nvidia = reaction_plan(transport_values(dcqcn("nvidia"), 8.0))
    net = Tree(STAR, nic={"seed": seed, "pace_jitter": 0.1}, kmin_bytes=80_000, kmax_bytes=160_000, pmax=1.0)
    _, tested = net.send("ha", "hc", 1 << 30, plan=change_plan(nvidia, **ours))
    net.send("hb", "hc", 1 << 30, plan=nvidia)
    net.engine.run(100 * PS_PER_MS, while_jobs=False)
    return float(net.engine.pair_result(tested).delivered * PACKET * 8 / 1e8)


def test_a_modelled_nic_that_applies_t_passes_and_one_that_does_not_fails() -> None:
    short, long = ([modelled_gbps(t_us, seed) for seed in range(3)] for t_us in (100, 20000))
    assert applies_timer({100: short, 20000: long})
    assert min(short) > 3 * max(long)
    same = [modelled_gbps(100, seed) for seed in range(3, 6)]
    assert not applies_timer({100: short, 20000: same})
