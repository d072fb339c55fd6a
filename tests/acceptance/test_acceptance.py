# SPDX-License-Identifier: Apache-2.0
"""Acceptance: what is run, what limits say, and in the lab faults that must be found and named."""

import json
import os
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from analysis.expectations import acceptance_metrics as analysis
from roundabout.checks import report
from roundabout.checks.acceptance import experiments
from roundabout.checks.acceptance.acceptance import PARTS, Acceptance, Part
from roundabout.checks.acceptance.limits import read_limits
from roundabout.checks.acceptance.rack import rdma_verdicts
from roundabout.checks.acceptance.run import FabricTest, judge_classes, judge_links, measure
from roundabout.checks.acceptance.verdicts import (
    class_verdicts,
    job_verdicts,
    judge_figure,
    link_verdicts,
    retransmission_verdicts,
    survey_verdicts,
)
from roundabout.checks.check import Verdict, select_parts
from roundabout.cli.main import main
from roundabout.core.errors import UsageError
from roundabout.runner.hosts.host_group import Host
from roundabout.runner.run import Runner
from roundabout.runner.session import connectivity_check
from roundabout.runner.session.connectivity_check import ConnectivityReport, PingResult
from roundabout.spec import load_topology
from roundabout.spec.errors import SpecError
from roundabout.spec.transports import Transport
from roundabout.store import schemas
from roundabout.testbeds import undo
from roundabout.testbeds.rack.examination import Finding
from roundabout.testbeds.rack.inventory import LosslessClasses
from roundabout.testbeds.rack.rdma_class_check import Difference, NoRdmaError, Row, UnequalRdmaError
from tests.acceptance.faults import FAULTS, Fault, SpoiltProvider
from tests.computed_runs import RUNNER
from tests.observers import Silent

pytestmark = pytest.mark.lab

TOPOLOGY, RAILS, LIMITS = load_topology("dumbbell-2x2"), load_topology("two-rails"), read_limits(None)
DCQCN = Transport.model_validate({"name": "dcqcn"})
PAIRS = [(one, other) for one in TOPOLOGY.hosts for other in TOPOLOGY.hosts if one != other]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="a lab needs root")


def test_each_link_is_shared_by_pairs_that_meet_nowhere_else() -> None:
    links = experiments.shared_links(TOPOLOGY)
    assert list(links) == ["s0", "s1", "s2", "s3", "L1"]
    assert links["L1"] == (("s0", "s2"), ("s1", "s3"))
    assert links["s0"] == (("s0", "s1"), ("s0", "s2"))


def test_the_fluid_testbed_passes_acceptance(tmp_path: Path) -> None:
    """Links are shared like water there, and nothing else goes wrong: what it cannot show aside."""
    links = experiments.link_variants(TOPOLOGY)
    run = RUNNER.start(experiments.link_experiment(TOPOLOGY, DCQCN), "acceptance", tmp_path)
    met = analysis.link_figures(run, {variant: link for variant, (link, _) in links.items()})
    verdicts = link_verdicts(links, {variant: each._asdict() for variant, each in met.items()}, LIMITS)
    verdicts_by_name = {(each.of, each.name): each for each in verdicts}
    assert verdicts_by_name["link L1, two flows", "use_two"].verdict == "pass"
    assert verdicts_by_name["link L1, many flows", "jain_many"].found == "1"
    assert verdicts_by_name["link L1, many flows", "marked_many"].verdict == "fail", (
        "a figure that hosts must report, and do not, fails them"
    )
    run = RUNNER.start(experiments.job_experiment(TOPOLOGY, DCQCN), "acceptance", tmp_path)
    slow = {each.name: each for each in job_verdicts(analysis.slowdowns(run, "standard", "idle"), LIMITS)}
    assert slow["slowdown_idle"].found == "1"
    assert slow["slowdown_job"].found == "1.4"
    assert slow.keys() == {f"slowdown_{each}" for each in ("idle", *experiments.CONGESTORS)}


def test_an_interval_fails_where_all_of_it_is_beyond() -> None:
    assert judge_figure("the job", "slowdown_job", (2.2, (1.9, 2.5)), LIMITS).verdict == "pass"
    assert judge_figure("the job", "slowdown_job", (2.2, (2.1, 2.5)), LIMITS).verdict == "fail"
    assert judge_figure("link L1", "use_two", (0.79, None), LIMITS) == Verdict(
        "link L1", "use_two", "0.79", "at least 0.8", "fail"
    )
    assert judge_figure("link L1", "drops", None, LIMITS).verdict == "not measured"
    assert judge_figure("link L1", "marked_many", (0.0, None), LIMITS, by_rdma=True).verdict == "fail"


def test_limits_of_a_user_go_before_ours(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("least_use_two: 0.95\nmost_marked_many: null\n")
    limits = read_limits(tmp_path / "mine.yaml")
    assert (limits.least_use_two, limits.most_marked_many) == (0.95, None)
    assert limits.least_use_many == LIMITS.least_use_many
    (tmp_path / "mine.yaml").write_text("schema: 1\nleast_usage: 0.95\n")
    with pytest.raises(SpecError, match=r"mine.yaml:2: least_usage"):
        read_limits(tmp_path / "mine.yaml")
    (tmp_path / "mine.yaml").write_text("least_use_two: much\n")
    with pytest.raises(SpecError, match=r"mine.yaml:1: least_use_two: found 'much', expected a number"):
        read_limits(tmp_path / "mine.yaml")


def surveyed(**other: object) -> ConnectivityReport:
    """A fabric without fault, but for what is said otherwise by `SENDER_RECEIVER`."""
    good = {pair: PingResult(*pair, 0, 0, 0.1) for pair in PAIRS}
    for name, found in other.items():
        sender, receiver = name.split("_")
        good[sender, receiver] = good[sender, receiver]._replace(**found)  # type: ignore[arg-type]
    return ConnectivityReport({(host, 0): 1500 for host in TOPOLOGY.hosts}, tuple(good.values()), 0)


def failed(verdicts: list[Verdict]) -> list[tuple[str, str]]:
    return [(each.of, each.name) for each in verdicts if each.verdict == "fail"]


def test_a_survey_names_the_link() -> None:
    assert failed(survey_verdicts(TOPOLOGY, surveyed(), LIMITS)) == []
    across = {
        f"{one}_{other}": {"rtt_ms": 4.0}
        for one, other in PAIRS
        if {one, other} & {"s0", "s1"} not in ({one, other}, set())
    }
    assert failed(survey_verdicts(TOPOLOGY, surveyed(**across), LIMITS)) == [("link L1", "rtt_ms")]
    dead = {f"{one}_{other}": {"lost_small": 10, "rtt_ms": None} for one, other in PAIRS if "s3" in (one, other)}
    assert failed(survey_verdicts(TOPOLOGY, surveyed(**dead), LIMITS)) == [("link s3", "lost")]
    cut = {f"{one}_{other}": {"lost_large": 10, "rtt_ms": None} for one, other in PAIRS if "s2" in (one, other)}
    assert failed(survey_verdicts(TOPOLOGY, surveyed(**cut), LIMITS)) == [("link s2", "lost_whole")]
    chance = {pair: {"lost_small": count} for pair, count in (("s0_s3", 1), ("s3_s1", 2), ("s3_s2", 1))}
    (lossy,) = (each for each in survey_verdicts(TOPOLOGY, surveyed(**chance), LIMITS) if each.verdict == "fail")
    assert (lossy.of, lossy.found) == ("link s3", "2, on 3 of 6 paths over it")
    ambiguous = surveyed(s0_s3={"lost_small": 1}, s1_s3={"lost_small": 1})
    assert failed(survey_verdicts(TOPOLOGY, ambiguous, LIMITS)) == [("s0 to s3", "lost"), ("s1 to s3", "lost")]
    strange = surveyed()
    strange.mtu_bytes["s1", 0] = 9000  # type: ignore[index]
    assert failed(survey_verdicts(TOPOLOGY, strange, LIMITS)) == [("host s1", "mtu_bytes")]
    # What no one link explains is reported by host.
    two = surveyed(s0_s1={"lost_small": 1}, s2_s3={"lost_small": 1})
    assert failed(survey_verdicts(TOPOLOGY, two, LIMITS)) == [("s0 to s1", "lost"), ("s2 to s3", "lost")]


def test_losses_and_classes_name_the_link_and_its_direction() -> None:
    for_lost_ones, for_lost_acknowledgements = (50, 5000), (80, 50_000)
    resent = {pair: for_lost_ones if pair[1] == "s3" else (0, 5000) for pair in PAIRS}
    resent["s3", "s0"] = for_lost_acknowledgements
    assert failed(retransmission_verdicts(TOPOLOGY, resent, LIMITS)) == [("link s3, tor1 to s3", "resent")]
    came = {pair: Counter({8 if pair[0] == "s2" else 26: 100}) for pair in PAIRS}
    (wrong,) = class_verdicts(TOPOLOGY, came, 26, LIMITS)
    assert (wrong.of, wrong.name, wrong.verdict) == ("link s2, s2 to tor1", "wrong_class", "fail")
    assert wrong.found == "100 with DSCP 8, expected 26, by captured packets"


class Captured:
    """Stands for a run of which packets were captured: (host, direction, source, port, DSCP, bytes of data) of each.

    A seventh value is the opcode of an InfiniBand packet.

    One flow of its job is known: from port 50000 of s0 by its second NIC to that of s1.
    """

    def __init__(self, *packets: tuple[Any, ...]) -> None:
        names = ("host", "direction", "source", "source_port", "dscp", "payload_bytes", "bth_opcode")
        rows = [{**dict(zip(names, each, strict=False)), "destination_port": 29_400} for each in packets]
        self._parts = [pa.Table.from_pylist([row], schema=schemas.schema("packets")) for row in rows]
        self._spec = next(
            cell.spec for cell in experiments.link_experiment(RAILS, DCQCN).cells if cell.variant == experiments.CLASSES
        )

    def trials(self) -> list[dict[str, Any]]:
        return [{"trial": "t", "spec": self._spec.model_dump(mode="json", by_alias=True)}]

    def table(self, name: str, **_: Any) -> pa.Table:
        if name == "packets":
            return pa.concat_tables(self._parts)
        flow = {"trial": "t", "job": "everybody", "rank": 1, "peer_rank": 3, "flow": 0, "host": "s0", "peer": "s1"}
        counts = {"retransmitted": 5, "delivered_segments": 70}
        rows = [{**flow, **counts, "local_port": 50_000, "remote_port": 29_400}]
        return pa.Table.from_pylist(rows, schema=schemas.schema(name))


def test_classes_are_of_packets_that_came_with_data() -> None:
    one, other = ("s0", "out", "10.77.0.1"), ("s1", "in", "10.77.0.1")
    run: Any = Captured(
        (*one, 1, 26, 1448),
        (*other, 1, 26, 1448),
        (*other, 1, 8, 1448),
        (*other, 1, 0, 0),
        (*other, 50_000, 8, 1448),
        (*other, 2, 26, 1024, 6),
        (*other, 2, 0, 256, 0x64),
        ("s0", "in", "10.9.9.9", 1, 4, 1),
    )
    came = {("s0", "s1"): {26: 2, 8: 1}, ("s0-1", "s1-1"): {8: 1}, ("10.9.9.9", "s0"): {4: 1}}
    assert analysis.dscp_counts(run) == came
    wrong = class_verdicts(RAILS, analysis.dscp_counts(run), 26, LIMITS)
    assert failed(wrong)[0][0] == "s0 to s1", "an address, and hosts without NICs, have no path"
    assert analysis.retransmissions(run) == {("s0-1", "s1-1"): (5, 70)}
    assert analysis.retransmissions(run, ["t"]) == {}


def test_pauses_are_those_of_all_nics() -> None:
    names = ("host", "device", "counter", "host_ns", "value")
    rows = [
        dict(zip(names, (host, "ens1", counter, at, value), strict=True))
        for host, counter, values in (
            ("s0", "rx_prio3_pause", (5, 7)),
            ("s1", "rx_prio3_pause", (0, 9)),
            ("s0", "x", (0, 99)),
        )
        for at, value in enumerate(values)
    ]
    schema = schemas.schema("device_counters")
    assert analysis.count_pauses(pa.Table.from_pylist(rows, schema=schema)) == 11
    assert analysis.count_pauses(pa.Table.from_pylist(rows[-2:], schema=schema)) is None


class Measured:
    """Stands for a run of which RDMA was not captured, whose NICs counted packets, by host and counter."""

    def __init__(self, way: str, counted: dict[tuple[str, str], int]) -> None:
        error = {"rdma_not_captured": {"s0": "tcpdump: mlx5_0: No such device exists"}}
        self._records = [{"trial": "t", "variant": experiments.CLASSES, "ways": {"everybody": way}, **error}]
        common = {"variant": experiments.CLASSES, "trial": "t", "attempt": 1, "device": "ens1"}
        rows = [
            common | {"host": host, "counter": counter, "host_ns": at, "value": value}
            for (host, counter), gained in counted.items()
            for at, value in enumerate((7, 7 + gained))
        ]
        captured = [{"host": "s1", "direction": "in", "source": "10.0.0.1", "dscp": 26, "payload_bytes": 1448}]
        self._rows = {"device_counters": rows, "packets": captured, "flows": [], "cpu": []}

    def trials(self) -> list[dict[str, Any]]:
        return self._records

    def table(self, name: str, **_: Any) -> pa.Table:
        return pa.Table.from_pylist(self._rows[name], schema=schemas.schema(name))


def judged_classes(way: str, counted: dict[tuple[str, str], int]) -> dict[tuple[str, str], Verdict]:
    run: Any = Measured(way, counted)
    fabric = FabricTest(TOPOLOGY, DCQCN, None, LosslessClasses())
    found = Acceptance(topology="rack", where={}, limits=LIMITS, dscp=26)
    return {(each.of, each.name): each for each in judge_classes(fabric, found, run, run.trials())}


def test_classes_of_rdma_that_is_not_captured_are_judged_by_counters() -> None:
    good = {(host, f"{side}_prio3_packets"): 98_000 for host in TOPOLOGY.hosts for side in ("rx", "tx")}
    good |= {(host, "rx_prio6_packets"): 2000 for host in TOPOLOGY.hosts} | {("s0", "tx_prio0_packets"): 900}
    verdicts_by_name = judged_classes("RDMA", good)
    assert {each.verdict for each in verdicts_by_name.values()} == {"pass"}
    words = " of 98900 packets, by the NIC's counters, as RDMA is not captured"
    assert verdicts_by_name["host s0, tx", "other_priorities"].found == "0.0091" + words
    moved = {**good, ("s2", "rx_prio0_packets"): 98_000, ("s2", "rx_prio3_packets"): 0}
    assert failed(list(judged_classes("RDMA", moved).values())) == [("host s2, rx", "other_priorities")]
    del good["s3", "tx_prio3_packets"]
    assert failed(list(judged_classes("RDMA", good).values())) == [("host s3, tx", "other_priorities")]


def test_no_class_of_tcp_in_nics_is_claimed() -> None:
    verdicts_by_name = judged_classes("TCP", {("s0", "tx_prio0_packets"): 990, ("s0", "tx_prio3_packets"): 10})
    assert verdicts_by_name["all hosts", "wrong_class"].found == "0, all with DSCP 26, by captured packets"
    tcp = verdicts_by_name["all hosts", "nic_class"]
    assert tcp.verdict == "not measured"
    assert "sends TCP in priority 0 (99% of the sent packets counted there)" in tcp.found
    assert "(NICs do not count it)" in judged_classes("TCP", {})["all hosts", "nic_class"].found


@pytest.mark.parametrize(("way", "found"), [("RDMA", "5"), ("TCP", "no figure")])
def test_figures_of_flows_are_of_their_datapath(monkeypatch: pytest.MonkeyPatch, way: str, found: str) -> None:
    sharing = analysis.LinkSharing(use=0.9, jain=1.0, marked=None, drops=None, pauses=5)
    monkeypatch.setattr(analysis, "link_figures", lambda *_: {"L1-two": sharing})
    monkeypatch.setattr(analysis, "retransmissions", lambda *_: {})
    run: Any = Measured("TCP", {})
    run.trials().append({"trial": "u", "variant": "L1-two", "ways": {"f1": way}})
    for each in run.trials():
        each.update(valid=True, reason=None)
    rack = Acceptance(topology="rack", where={}, limits=LIMITS, dscp=26)
    verdicts_by_name = {
        each.name: each for each in judge_links(FabricTest(TOPOLOGY, DCQCN, None, LosslessClasses()), rack, run)
    }
    assert verdicts_by_name["pauses"].found == found
    missing = "not measured" if way == "RDMA" else "fail"  # as only NICs count marks and losses of RDMA
    assert (verdicts_by_name["marked_two"].verdict, verdicts_by_name["resent"].verdict) == ("not measured", missing)


@needs_root
def test_pings_are_reported() -> None:
    """By the program that hosts run, over loopback."""
    lo, *peers = (Host(f"s{n}", f"s{n}", f"127.0.0.{max(n, 1)}", 8, "lo", Path()) for n in range(3))
    (argv,) = connectivity_check.pinger_commands(lo, [lo, *peers])
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    nics = {"127.0.0.1": ("s1", 0), "127.0.0.2": ("s2", 1)}
    answers = list(connectivity_check.parse_answers("s0", nics, said))
    for (mtu_bytes, pinged), name in zip(answers, ("s1", "s2"), strict=True):
        assert (pinged[:4], pinged.nic) == (("s0", name, 0, 0), int(name == "s2"))
        assert pinged.rtt_ms is not None and pinged.rtt_ms > 0
        assert mtu_bytes == int(Path("/sys/class/net/lo/mtu").read_text())


def test_only_parts_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert select_parts([], PARTS) == PARTS
    assert select_parts(["links", "paths"], PARTS) == ("paths", "links")
    with pytest.raises(UsageError, match="found 'speed', expected some of paths, bandwidth, links, job"):
        select_parts(["speed"], PARTS)
    assert main(["acceptance", "--only", "speed"]) == 2
    assert "found 'speed', expected some of paths, bandwidth, links, job" in capsys.readouterr().err
    assert main(["acceptance", "--transport", "dcqn"]) == 2
    assert "--transport: found 'dcqn', expected one of" in capsys.readouterr().err
    assert main(["acceptance", "--testbed", "fluid"]) == 2
    assert "found testbed fluid, expected one whose hosts send packets" in capsys.readouterr().err


def test_rdmas_own_packets_count_where_servers_have_it() -> None:
    good, bad = Row("s0", "s1", 92.1, ()), Row("s1", "s0", 0.0, (Difference("s0 rx_prio3_bytes", "9 at least", "0"),))
    found = rdma_verdicts(lambda: [good, bad])
    assert found == [
        Verdict("s0 to s1", "ib_write_bw", "92.1 Gbit/s, all in their classes", "packets in their classes", "pass"),
        Verdict("s1 to s0", "s0 rx_prio3_bytes", "0", "9 at least", "fail"),
    ]
    page = report.render_page(
        Acceptance(topology="rack", where={"testbed": "rack"}, limits=LIMITS, parts={"rdma": found})
    )
    assert "RDMA&#39;s own packets" in page and "rx_prio3_bytes" in page

    def lacking() -> list[Row]:
        raise NoRdmaError("s0: RDMA device: none")

    (verdict,) = rdma_verdicts(lacking)
    assert (verdict.verdict, verdict.found) == ("not measured", "not measured: s0: RDMA device: none")

    def unequal() -> list[Row]:
        raise UnequalRdmaError("s1", Finding("GID", False, "none is 10.10.0.2 by RoCE v2", "RoCE on in its firmware"))

    assert rdma_verdicts(unequal) == [
        Verdict("NIC of s1", "GID", "none is 10.10.0.2 by RoCE v2", "one, as other NICs have", "fail")
    ]


class Acceptor:
    """Looks at labs with a fault, or without, with a machine's state of its own."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def __call__(self, fault: Fault | None, *wanted: Part) -> Acceptance:
        runner = Runner(SpoiltProvider(fault), Silent(), undo, self._home / "run", self._home / "journals")
        found = Acceptance(topology=TOPOLOGY.name, where={"testbed": "lab"}, limits=LIMITS)
        measure(FabricTest(TOPOLOGY, DCQCN, experiments.OWN_DSCP), wanted, found, runner, self._home / "runs")
        assert not any((self._home / "journals").glob("*"))
        return found


@pytest.fixture
def accept(tmp_path: Path) -> Acceptor:
    return Acceptor(tmp_path)


def is_named(fault: Fault, found: Acceptance) -> bool:
    return any(
        each.of.startswith(fault.of) and each.name == fault.name and fault.found in each.found
        for each in found.failures
    )


@needs_root
def test_a_lab_with_another_mtu_on_one_host_does_not_pass(accept: Acceptor) -> None:
    found = accept(FAULTS["other-mtu"], "paths")
    assert is_named(FAULTS["other-mtu"], found), found.failures
    assert "It does not pass" in report.render_page(found)
    record = json.loads(json.dumps(found.record()))
    assert record["accepted"] is False and record["limits"]["most_lost"] == 0
    assert found.fidelity and found.fidelity.nature == "emulated"


@pytest.mark.proof
@pytest.mark.quiet
@needs_root
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_and_named(accept: Acceptor, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roundabout.runner.run.MAX_REPEATS", 0)
    fault = FAULTS[name]
    found = accept(fault, fault.part)
    print(*found.failures, sep="\n")
    assert is_named(fault, found), found.failures


@pytest.mark.proof
@pytest.mark.quiet
@needs_root
@pytest.mark.parametrize("number", range(5))
def test_a_lab_passes(accept: Acceptor, number: int) -> None:
    found = accept(None, *PARTS)
    assert not found.failures
    assert list(found.parts) == [*PARTS[:2], "counters", *PARTS[2:]]
