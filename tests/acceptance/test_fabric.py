# SPDX-License-Identifier: Apache-2.0
"""Acceptance without a lab: bandwidth of each pair, counters, the verdict on each host, soak, and BMWG's tables."""

import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from analysis.expectations import acceptance_metrics as analysis, fabric_benchmarks
from analysis.expectations.fabric_benchmarks import PlayedTrials
from roundabout.checks.acceptance import experiments, tables
from roundabout.checks.acceptance.acceptance import PARTS, Acceptance
from roundabout.checks.acceptance.limits import read_limits
from roundabout.checks.acceptance.run import JUDGES, FabricTest, HostCounters, judge_bandwidth, measure, soak
from roundabout.checks.acceptance.verdicts import (
    counter_verdicts,
    crossing_verdicts,
    trial_verdicts,
    unshared_verdicts,
)
from roundabout.checks.check import Verdict
from roundabout.cli.main import main
from roundabout.core.disjoint_rounds import disjoint_rounds
from roundabout.runner.run import Runner
from roundabout.spec import load_topology
from roundabout.spec.frames import roce_payload_bytes, roce_payload_share
from roundabout.spec.routing import FIRST_PORT, Routing
from roundabout.spec.topology import Topology
from roundabout.spec.transports import Transport
from roundabout.store import schemas
from roundabout.testbeds import find_provider, undo
from tests.computed_runs import RUNNER
from tests.observers import Silent
from tests.several_paths.fabrics import leaf_spine, rails

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
TOPOLOGY, RAILS, LIMITS = load_topology("dumbbell-2x2"), load_topology("two-rails"), read_limits(None)
DCQCN = Transport.model_validate({"name": "dcqcn"})
PACKETS = Runner(find_provider({"testbed": "packets"}), Silent(), undo)
FABRIC = FabricTest(TOPOLOGY, DCQCN, experiments.OWN_DSCP)


def accepted(**parts: list[Verdict]) -> Acceptance:
    hosts: dict[str, tuple[str, ...]] = {host: (f"gpu{host[1:]}.example.org", host) for host in TOPOLOGY.hosts}
    return Acceptance(topology="dumbbell-2x2", where={"testbed": "lab"}, limits=LIMITS, hosts=hosts, parts=parts)


def test_rounds_use_nothing_twice() -> None:
    assert disjoint_rounds(["ab", "cd", "ac", "bd"], set) == [["ab", "cd"], ["ac", "bd"]]


def test_each_ordered_pair_of_hosts_has_its_links_for_itself() -> None:
    rounds = experiments.bandwidth_flows(TOPOLOGY)
    assert sorted(flow for flows in rounds.values() for flow in flows) == sorted(
        (one, other, FIRST_PORT) for one in TOPOLOGY.hosts for other in TOPOLOGY.hosts if one != other
    )
    for flows in rounds.values():
        crossed = [hop.link.name for flow in flows for hop in TOPOLOGY.path(*flow)]
        assert len(crossed) == len(set(crossed))
    assert not experiments.uncrossed_hops(TOPOLOGY)


@pytest.mark.parametrize("name", ["leaf-spine-2x2", "leaf-spine-8x8", "two-rails"])
def test_flows_cross_all_links_of_all_paths_in_both_directions(name: str) -> None:
    topology = load_topology(name)
    rounds = experiments.bandwidth_flows(topology)
    flows = [flow for found in rounds.values() for flow in found]
    assert {flow[:2] for flow in flows} >= set(pairs_of_rails(topology))
    crossed = {(hop.link.name, hop.sender) for flow in flows for hop in topology.nic_path(*flow)}
    assert crossed == {(link.name, end) for link in topology.links for end in link.ends}
    assert not experiments.uncrossed_hops(topology)
    jobs = {
        name: job for cell in experiments.bandwidth_experiment(topology).cells for name, job in cell.spec.jobs.items()
    }
    assert len(jobs) == len(flows)
    for flow in flows:
        job = jobs[experiments.flow_name(flow)]
        (transfer,) = job.transfers(job.profile.phases[-1])
        assert job.routes("any", transfer, topology) == (topology.nic_path(*flow),)


def pairs_of_rails(topology: Topology) -> Iterator[tuple[str, str]]:
    """All ordered pairs of NICs of the same number."""
    for one, other in permutations(topology.nics, 2):
        if topology.nics[one][1] == topology.nics[other][1]:
            yield one, other


def test_links_that_no_flow_crosses_are_named() -> None:
    """Switches that choose by destination alone leave a spine idle between two hosts."""
    idle = leaf_spine(below=1, routing=Routing.model_validate({"name": "static"}))
    left = {(hop.link.name, hop.sender) for hop in experiments.uncrossed_hops(idle)}
    assert left and {name for name, _ in left} <= {link.name for link in idle.links if link.name.startswith("l")}
    (verdict,) = crossing_verdicts(experiments.uncrossed_hops(idle), "no flow crossed")
    assert verdict.verdict == "not measured" and "link l" in verdict.found


def test_rails_are_measured_nic_by_nic_and_across_the_spine() -> None:
    rounds = experiments.bandwidth_flows(RAILS)
    pairs = [flow[:2] for found in rounds.values() for flow in found]
    nics = RAILS.nics
    of_rails = {(one, other) for one, other in pairs if nics[one][1] == nics[other][1]}
    assert of_rails == {
        (one, other) for one in nics for other in nics if one != other and nics[one][1] == nics[other][1]
    }
    crossed = {hop for pair in pairs for hop in RAILS.nic_path(*pair)}
    assert {(hop.link.name, hop.sender) for hop in crossed} == {
        (link.name, end) for link in RAILS.links for end in link.ends
    }
    links = experiments.shared_links(RAILS)
    assert links.keys() == {link.name for link in RAILS.links}
    assert links["s2-1"] == (("s0-1", "s2-1"), ("s1-1", "s2-1"))
    alone = RAILS.model_copy(update={"routing": RAILS.routing.model_copy(update={"pxn": True})})  # type: ignore[union-attr]
    assert experiments.shared_links(alone).keys() == links.keys() - {"rail0-spine", "rail1-spine"}, (
        "with PXN no flow leaves its rail"
    )


def test_jobs_of_nics_take_the_paths_that_verdicts_name() -> None:
    cells = experiments.bandwidth_experiment(RAILS).cells
    for variant, flows in experiments.bandwidth_flows(RAILS).items():
        jobs = next(cell.spec.jobs for cell in cells if cell.variant == variant)
        for flow in flows:
            job = jobs[experiments.flow_name(flow)]
            (transfer,) = job.transfers(job.profile.phases[-1])
            assert job.routes("any", transfer, RAILS) == (RAILS.nic_path(*flow),)
    cells = experiments.link_experiment(RAILS, DCQCN).cells
    for variant, (link, _) in experiments.link_variants(RAILS).items():
        jobs = next(cell.spec.jobs for cell in cells if cell.variant == variant)
        for name, job in jobs.items():
            routes = [job.routes(name, each, RAILS)[0] for each in job.transfers(job.profile.phases[-1])]
            assert all(link in {hop.link.name for hop in route} for route in routes) and len(routes) == 2


def test_two_servers_with_a_nic_each_are_refused_with_the_job_alone(capsys: pytest.CaptureFixture[str]) -> None:
    pair = load_topology("pair")
    assert not experiments.link_variants(pair)
    assert [cell.variant for cell in experiments.link_experiment(pair, DCQCN).cells] == [experiments.CLASSES]
    assert main(["acceptance", "--testbed", "fluid", "--topology", "pair"]) == 2
    assert "where two pairs of NICs meet alone" in capsys.readouterr().err
    assert main(["acceptance", "--testbed", "fluid", "--topology", "pair", "--only", "links"]) == 2
    assert "found testbed fluid" in capsys.readouterr().err
    (unshared,) = unshared_verdicts(experiments.link_variants(pair))
    assert unshared.verdict == "not measured" and not unshared_verdicts(experiments.link_variants(TOPOLOGY))


@pytest.mark.parametrize("servers", [2, 3])
def test_cross_traffic_beside_the_job_takes_the_rail_of_the_shared_link(servers: int) -> None:
    """Two servers share a link by flows of which one changes its rail, which no cross traffic does."""
    topology = rails(servers, 2)
    last = topology.links[1].model_copy(update={"bottleneck": True})
    assert last.name == "s0-1"
    topology = topology.model_copy(update={"links": (topology.links[0], last, *topology.links[2:])})
    own, others = experiments.job_pairs(topology)
    assert [topology.nics[nic][1] for nic in others] == [1, 1]
    shared = [{hop.link.name for hop in topology.nic_path(*pair)} for pair in (own, others)]
    assert "s0-1" in shared[0] & shared[1]
    cells = {cell.variant: cell.spec for cell in experiments.job_experiment(topology, DCQCN).cells}
    for kind in ("iperf", "consistent", "burst"):
        (flow,) = cells[kind].cross_traffic["cross"].flows
        assert [hop.link.name for hop in topology.path(*flow)] == [hop.link.name for hop in topology.nic_path(*others)]


def test_a_slow_nic_of_a_server_with_several_is_named_on_packets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One link of a rail at half its rate, in the packet-level model."""
    monkeypatch.setattr(experiments, "PART_MS", 10.0)
    monkeypatch.setattr(experiments, "PARTS", 2)
    slow = [
        link.model_copy(update={"line_rate_gbps": 25.0, "payload_rate_gbps": 21.5}) if link.name == "s2-1" else link
        for link in RAILS.links
    ]
    experiment = experiments.bandwidth_experiment(RAILS)
    cells = tuple(
        cell.model_copy(
            update={"spec": cell.spec.model_copy(update={"topology": RAILS.model_copy(update={"links": tuple(slow)})})}
        )
        for cell in experiment.cells
    )
    run = PACKETS.start(experiment.model_copy(update={"cells": cells}), "acceptance", tmp_path)
    found = [each for each in judge_bandwidth(FabricTest(RAILS, DCQCN, 26), accepted(), run) if each.verdict == "fail"]
    assert [(each.of, each.name) for each in found] == [("link s2-1", "bandwidth")]


def test_bandwidth_is_judged_by_pair_and_direction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = RUNNER.start(experiments.bandwidth_experiment(TOPOLOGY), "acceptance", tmp_path)
    (_, healthy) = judge_bandwidth(FABRIC, accepted(), run)
    assert (healthy.name, healthy.verdict, healthy.found.partition(" ")[0]) == ("bandwidth", "pass", "1")
    rates = analysis.bandwidths(run)
    assert rates.keys() == {f"{one}-to-{other}" for one in TOPOLOGY.hosts for other in TOPOLOGY.hosts if one != other}
    slow = {name: rate / 2 if name.endswith("-to-s1") else rate for name, rate in rates.items()}
    monkeypatch.setattr(analysis, "bandwidths", lambda _: slow)
    (_, found) = judge_bandwidth(FABRIC, accepted(), run)
    assert (found.of, found.verdict) == ("link s1, tor0 to s1", "fail")
    assert found.found == "0.5 of 43 Gbit/s, the line rate less headers, by one flow"
    del slow["s2-to-s3"]
    found_by_pair = {each.of for each in judge_bandwidth(FABRIC, accepted(), run)[1:]}
    assert found_by_pair == {"s0 to s1", "s2 to s1", "s2 to s3", "s3 to s1"}


def test_rdma_payload_is_the_line_rate_less_headers() -> None:
    """Path MTUs are those that Linux takes at an Ethernet MTU: 1024 at 1500, 4096 at 4200 and 9000 (ib_addr.h).

    ib_write_bw of 100 Gbit/s NICs is publicly reported as 92.6 Gbit/s with 1024, and 98.0 with 4096.
    """
    assert [roce_payload_bytes(each) for each in (1280, 1500, 4191, 4192, 9000)] == [1024, 1024, 2048, 4096, 4096]
    assert roce_payload_share(1500) == pytest.approx(0.926, abs=5e-4)
    assert roce_payload_share(9000) == pytest.approx(0.980, abs=5e-4)


def test_a_risen_counter_fails_its_host() -> None:
    (verdict,) = counter_verdicts({("s0", "carrier_changes"): 2, ("s1", "rx_dropped"): 0}, LIMITS)
    assert (verdict.of, verdict.name, verdict.found, verdict.verdict) == (
        "host s0, carrier_changes",
        "risen",
        "2",
        "fail",
    )
    (passed,) = counter_verdicts({("s1", "rx_dropped"): 0}, LIMITS)
    assert (passed.found, passed.verdict) == ("none of rx_dropped", "pass")


def test_counters_of_hosts_and_links_are_compared() -> None:
    common = {"trial": "t", "attempt": 1, "host": "s0"}
    drops = [
        {**common, "interface": "eth0", "host_ns": at, "tx_dropped": 5, "rx_dropped": value}
        for at, value in enumerate((1, 1, 4))
    ]
    states = [
        {**common, "device": "eth0", "source": "link", "counter": "up", "host_ns": at, "value": value}
        for at, value in enumerate((1, 1, 0, 1))
    ]
    rows = {"counters": drops, "device_counters": states}

    class Counted:
        def table(self, name: str, **_: Any) -> pa.Table:
            return pa.Table.from_pylist(rows[name], schema=schemas.schema(name))

    run: Any = Counted()
    assert analysis.dropped_packets(run) == {"t": {("s0", "tx_dropped"): 0, ("s0", "rx_dropped"): 3}}
    assert analysis.carrier_changes(run) == {("s0", "carrier_changes"): 2}


def failure(of: str) -> Verdict:
    return Verdict(of, "bandwidth", "0.5", "at least 0.9", "fail")


@pytest.mark.parametrize(("of", "concerned"), [
    ("link s1, tor0 to s1", {"s1"}),
    ("s0 to s1", {"s0", "s1"}),
    ("host s3, carrier_changes", {"s3"}),
    ("NIC of s2, sending", {"s2"}),
    ("link L1", {"s0", "s1", "s2", "s3"}),
])  # fmt: skip
def test_a_finding_concerns_the_hosts_that_it_names_or_all(of: str, concerned: set[str]) -> None:
    record = accepted(links=[failure(of)]).record()
    assert {host for host, each in record["hosts"].items() if each["verdict"] == "fail"} == concerned
    assert record["accepted"] is False


def test_the_documented_prolog_drains_the_node_that_failed_alone(tmp_path: Path) -> None:
    page = (ROOT / "docs/how-to/acceptance.md").read_text()
    (script,) = re.findall(r"```sh\n(#!/bin/sh\n.*?)```", page, re.DOTALL)
    verdict = tmp_path / "verdict.json"
    program = tmp_path / "prolog.sh"
    program.write_text(script.replace("/shared/fabric-verdict.json", str(verdict)))

    def prolog(node: str) -> subprocess.CompletedProcess[str]:
        environment = {"SLURMD_NODENAME": node, "PATH": "/usr/bin:/bin"}
        return subprocess.run(["sh", program], env=environment, capture_output=True, text=True)

    assert prolog("gpu1").returncode == 0, "no verdict yet"
    verdict.write_text(json.dumps(accepted(links=[failure("link s1, tor0 to s1")]).record()))
    drained = prolog("gpu1")
    assert drained.returncode == 1
    assert "link s1, tor0 to s1: bandwidth: found 0.5, expected at least 0.9" in drained.stdout
    assert [prolog(node).returncode for node in ("gpu0", "gpu10", "gpu1.example.org")] == [0, 0, 1]
    verdict.write_text("{")
    assert prolog("gpu1").returncode == 0, "an unreadable verdict drains nothing"


def test_soak_repeats_until_a_round_fails_and_says_how_stable_the_job_was() -> None:
    found, slowdowns = accepted(links=[]), iter((1.0, 1.1, 1.2))

    def measure_round(own: Acceptance) -> None:
        slowdown = next(slowdowns)
        own.parts["job"] = [Verdict("the job", "slowdown_idle", str(slowdown), "", "pass", slowdown)]
        if slowdown > 1.15:
            own.parts["job"].append(failure("host s0"))

    soak(1.0, measure_round, found, Silent())
    assert [each.of for each in found.parts["soak"]] == ["round 1", "round 2", "round 3", "host s0", "all rounds"]
    assert found.parts["soak"][-1].found == "0.0909"
    assert found.failures == [failure("host s0")]
    soak(0.0, measure_round, none := accepted(), Silent())
    assert "soak" not in none.parts


@pytest.mark.parametrize(("reason", "verdict"), [(KeyboardInterrupt, "not measured"), (OSError, "fail")])
def test_a_round_of_soak_that_breaks_off_is_named_with_its_runs(reason: type[BaseException], verdict: str) -> None:
    def measure_round(own: Acceptance) -> None:
        own.runs.append("runs/acceptance/1")
        raise reason

    found = accepted(links=[])
    with pytest.raises(reason):
        soak(1.0, measure_round, found, Silent())
    assert [(each.of, each.found, each.verdict) for each in found.parts["soak"]] == [("round 1", "broke off", verdict)]
    assert found.runs == ["runs/acceptance/1"]


# --- CPU time


class Stored:
    """Stands for a run of trials that last 100 ms, of which `records` are the trial.json and `busy` shares of CPU."""

    def __init__(self, records: list[dict[str, Any]], busy: dict[str, float]) -> None:
        self._records, self._busy = records, busy

    def trials(self) -> list[dict[str, Any]]:
        return self._records

    def table(self, name: str, **_: Any) -> pa.Table:
        common = {"host": "controller", "window_ms": 100.0}
        rows = [{**common, "trial": trial, "busy_share": share} for trial, share in self._busy.items()]
        return pa.Table.from_pylist(rows, schema=schemas.schema(name))


LATE = "trainers woke up 9.00 ms late (90th percentile, limit 2.0 ms)"


def stored(trial: str, reason: str = "", **fields: Any) -> dict[str, Any]:
    return {"trial": trial, "variant": trial, "valid": not reason, "reason": reason, "cpu_shortage": [], **fields}


def test_trials_that_lacked_cpu_time_are_known_by_their_signs() -> None:
    drifted = "settings drifted during the trial: s1: T_us is 20000, expected 1126"
    run: Any = Stored(
        [
            stored("late", LATE, cpu_shortage=[LATE]),
            stored("drifted", drifted, cpu_shortage=[LATE], settings_differ=True),
            stored("lossy", "5 segments were sent again on a lossless fabric"),
            stored("busy"),
            stored("quiet"),
        ],
        {"busy": 0.99, "quiet": 0.8, "lossy": 1.0},
    )
    assert analysis.cpu_shortages(run) == {
        "late": LATE,
        "busy": "99% of it was in use",
        "lossy": "100% of it was in use",
    }
    signs = analysis.signs_of_shortage(run)
    words = {each.of: (each.verdict, each.found) for each in trial_verdicts(run.trials(), signs)}
    assert words == {
        "trial late": ("inconclusive", f"the CPU was short: {LATE}, in each of 3 attempts"),
        "trial drifted": ("fail", drifted),
        "trial lossy": ("fail", "5 segments were sent again on a lossless fabric"),
    }


def test_a_valid_repetition_decides_for_one_that_lacked_cpu_time() -> None:
    records = [stored("first", LATE, variant="idle"), stored("second", variant="idle")]
    (left_out,) = trial_verdicts(records, {"first": LATE})
    assert (left_out.of, left_out.verdict) == ("trial idle", "not measured")


def test_bandwidth_fails_by_trials_with_cpu_time_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = RUNNER.start(experiments.bandwidth_experiment(TOPOLOGY), "acceptance", tmp_path)
    by_name = {
        experiments.flow_name(flow): each
        for each, flows in experiments.bandwidth_flows(TOPOLOGY).items()
        for flow in flows
    }
    keys = {each["variant"]: each["trial"] for each in run.trials()}
    rates = analysis.bandwidths(run)
    slow = {name: rate / 2 if name.endswith("-to-s1") else rate for name, rate in rates.items()}
    monkeypatch.setattr(analysis, "bandwidths", lambda _: slow)
    short = {keys[by_name[name]] for name in rates if name.endswith("-to-s1")}

    def judged(trials: set[str]) -> list[tuple[str, str, str | None]]:
        monkeypatch.setattr(analysis, "cpu_shortages", lambda _: dict.fromkeys(trials, LATE))
        return [(each.of, each.found, each.verdict) for each in judge_bandwidth(FABRIC, accepted(), run)[1:]]

    ((of, found, verdict),) = judged(short)
    assert (of, verdict) == ("link s1, tor0 to s1", "inconclusive")
    assert found.startswith("0.5 of ") and found.endswith(f"; the CPU was short: {LATE}")
    assert {verdict for _, _, verdict in judged(short - {keys[by_name["s0-to-s1"]]})} == {"fail"}
    assert {verdict for _, _, verdict in judged(set(keys.values()))} == {"inconclusive"}


def test_dropped_packets_are_a_failure_of_the_last_trial_with_cpu_time(monkeypatch: pytest.MonkeyPatch) -> None:
    counters = HostCounters()

    def add(dropped: int, changes: int = 0, *, is_short: bool) -> str | None:
        monkeypatch.setattr(analysis, "dropped_packets", lambda _: {"t": Counter({("s0", "rx_dropped"): dropped})})
        monkeypatch.setattr(analysis, "carrier_changes", lambda _: Counter({("s0", "carrier_changes"): changes}))
        monkeypatch.setattr(analysis, "signs_of_shortage", lambda _: {"t": LATE} if is_short else {})
        run: Any = None
        counters.add(run)
        return counters.judge(LIMITS)[0].verdict

    assert add(3, is_short=True) == "inconclusive"
    assert add(0, is_short=False) == "pass"
    assert add(3, is_short=False) == "fail"
    assert add(3, 2, is_short=True) == "fail", "lack of CPU time changes no link"


def test_an_inconclusive_part_is_measured_again_and_the_next_one_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_ = Verdict("trial round-1", "valid", f"the CPU was short: {LATE}", "a valid trial", "inconclusive")
    judged = {"bandwidth": [open_], "links": [], "job": []}
    for part, verdicts in judged.items():
        monkeypatch.setitem(JUDGES, part, lambda *_, found=verdicts: found)
    monkeypatch.setattr(HostCounters, "add", lambda *_: None)
    begun = []

    class Started:
        def start(self, experiment: Any, *_: Any, **__: Any) -> Any:
            begun.append(experiment.name)
            return SimpleNamespace(path=tmp_path)

    runner: Any = Started()
    measure(FABRIC, PARTS, found := accepted(), runner, tmp_path)
    assert begun == [f"acceptance-{part}" for part in ("bandwidth", "bandwidth", "links", "job")]
    assert found.verdict == "inconclusive"
    record = found.record()
    assert (record["accepted"], record["verdict"]) == (False, "inconclusive")
    assert {each["verdict"] for each in record["hosts"].values()} == {"inconclusive"}
    assert record["hosts"]["s0"]["findings"] == [], "no finding drains a node"
    assert "It neither passes nor fails. Inconclusive figures: 1." in found.outcome
    found.parts["links"] = [failure("link s1")]
    assert found.verdict == "fail"


def test_an_inconclusive_acceptance_has_an_exit_status_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measure_undecided(_fabric: Any, _parts: Any, found: Acceptance, *_others: Any) -> None:
        found.parts["job"] = [Verdict("trial idle", "valid", f"the CPU was short: {LATE}", "", "inconclusive")]

    monkeypatch.setattr("roundabout.checks.acceptance.run.measure", measure_undecided)
    assert main(["acceptance", "--testbed", "lab", "--json", "--runs", str(tmp_path)]) == 4
    printed = capsys.readouterr()
    assert json.loads(printed.out)["verdict"] == "inconclusive"
    assert f"the CPU was short: {LATE}" in printed.err


# --- BMWG's tables


def test_overlaps_are_of_spine_links_that_both_jobs_use() -> None:
    experiment = tables.tables_experiment(load_topology("leaf-spine-8x8"), DCQCN)
    specs = {cell.variant: cell.spec for cell in experiment.cells}
    assert [each for each in specs if each.startswith("overlap")] == [
        "overlap-alone", "overlap-0", "overlap-25", "overlap-50", "overlap-75",
    ]  # fmt: skip
    for overlap in tables.OVERLAPS:
        spec = specs[f"overlap-{overlap}"]
        used = {}
        for name, job in spec.jobs.items():
            hops = [
                route[1]
                for each in job.transfers(job.profile.phases[1])
                for route in job.routes(name, each, spec.topology)
            ]
            used[name] = {(hop.link.name, hop.sender) for hop in hops}
            assert len(used[name]) == len(hops) == 8, "no flow of a job meets another one of it"
        assert len(used["j1"] & used["j2"]) == 8 * overlap / 100


def test_tables_have_what_a_topology_has_hosts_and_paths_for() -> None:
    dumbbell = {cell.variant for cell in tables.tables_experiment(TOPOLOGY, DCQCN).cells}
    assert dumbbell == {"incast-2", *(f"qps-{each}" for each in tables.QUEUE_PAIRS)}
    pods = {cell.variant for cell in tables.tables_experiment(load_topology("pod-leaf-spine"), DCQCN).cells}
    assert {"incast-64", "onset-64", "overlap-75"} <= pods and "onset-256" not in pods
    assert main(["acceptance", "--tables", "--topology", "pair", "--testbed", "packets"]) == 2


def test_tables_on_packets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """One command. The dumbbell has one link between its two switches, and three hosts that can send to the first."""
    for name, value in {"REPETITIONS": 2, "QUEUE_PAIRS": (4,)}.items():
        monkeypatch.setattr(tables, name, value)
    words = ["acceptance", "--tables", "--topology", "dumbbell-2x2", "--testbed", "packets", "--runs", str(tmp_path)]
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    incast, spread = found["rows"]["incast"]["2"], found["rows"]["qps"]["4"]
    assert 0.8 < incast["of line rate"] <= 1 and incast["JFI of senders"] > 0.95
    assert incast["PFC pauses/s, worst port"] is not None and incast["ECN marking ratio, %"] > 0
    assert (spread["MMR"], spread["JFI of links"], spread["repetitions"]) == (1, 1, 2)
    assert spread["busiest link, %"] == pytest.approx(spread["throughput, Gbit/s"] / 50 * 100, rel=0.02)
    assert found["rows"]["overlap"] == found["rows"]["onset"] == {}
    page = next(tmp_path.glob("acceptance/*/report.html")).read_text()
    assert "draft-calabria-bmwg-ai-fabric-training-bench-04" in page and "sets no criteria" in page
    assert "None of the draft&#39;s topologies; 4 hosts with 4 NICs" in page and "Deviation: Flows last 0.4" in page
    assert "overlap: not measured at 0, 25, 50, 75: dumbbell-2x2 lacks hosts or paths for it." in page


def test_interference_and_convergence_on_packets(tmp_path: Path) -> None:
    topology = load_topology("leaf-spine-8x8")
    whole = tables.tables_experiment(topology, DCQCN)
    wanted = ("overlap-alone", "overlap-50", "onset-4")
    cells = tuple(cell for cell in whole.cells if cell.variant in wanted)
    experiment = whole.model_copy(update={"cells": cells, "factors": {"variant": wanted}, "repetitions": 1})
    run = PACKETS.start(experiment, "acceptance", tmp_path)
    rows = tables.measure_tables(topology, PlayedTrials([run]))
    overlap = rows["overlap"][50]
    assert overlap["JCT interference factor"] == pytest.approx(1.5, abs=0.2), (
        "half of a job's flows have half a link while both send"
    )
    # Alone, a job sends at the payload rate, 8.6 of 10 Gbit/s; the roofline is at the line rate.
    roofline = tables.HALF_MS * (1 + 8.6 / 10)
    assert overlap["JCT ratio"] == pytest.approx(overlap["JCT interference factor"] * 100 / roofline, rel=0.05)
    assert overlap["S_fabric, MB"] == pytest.approx(overlap["S, MB"] * 2 * 7 / 8), "a ring of eight"
    onset = rows["onset"][4]
    assert onset["fair share, Gbit/s"] == pytest.approx(9.1 / 8, rel=0.05)
    assert onset["converged repetitions"] in (0, 1) and onset["CV"] is None


class Repeated:
    """Stands for a run of a variant whose one trial has an iteration of each `lasted_ms`, and a record of its state."""

    def __init__(self, lasted_ms: int, **state: Any) -> None:
        self._lasted_ns, self._record = lasted_ms * 1_000_000, {"trial": "t", "variant": "overlap-0", **state}

    def trials(self) -> list[dict[str, Any]]:
        cells = tables.tables_experiment(load_topology("leaf-spine-8x8"), DCQCN).cells
        spec = next(cell.spec for cell in cells if cell.variant == "overlap-0")
        return [{**self._record, "spec": spec.model_dump()}]

    def table(self, name: str, **_: Any) -> pa.Table:
        rows = [{"trial": "t", "job": "j1", "start_ns": 0, "comm_end_ns": self._lasted_ns, "sent_bytes": 1}]
        return pa.Table.from_pylist(rows if name == "iterations" else [], schema=schemas.schema(name))


def test_a_repeated_trial_replaces_one_that_lacked_cpu_time() -> None:
    short = {"valid": False, "disturbed": True, "disturbance": 0.2, "cpu_shortage": [LATE]}
    disturbed: Any = Repeated(900, **short)
    valid: Any = Repeated(600, valid=True)
    alone, both = PlayedTrials([disturbed]), PlayedTrials([disturbed, valid])
    assert alone.lacks_cpu("overlap-0") and not both.lacks_cpu("overlap-0")
    assert tables.disturbed_levels(alone)["overlap"] == {0: 0.2}
    assert tables.disturbed_levels(both)["overlap"] == {}
    jct = [fabric_benchmarks.interference(each, "overlap-0")(each.of("overlap-0")[0]) for each in (alone, both)]
    assert [each["contention JCT, ms"] for each in jct] == [900, 600]
    marked = {"rows": {"overlap": {0: {"CV": None}}}, "disturbed": {"overlap": {0: 0.2}}}
    table = tables.FabricTables(topology="x", where={}, **marked).figure_table("overlap")  # type: ignore[arg-type]
    assert table.sections[0].rows[0][0].value == "0 (disturbed)"


def test_tables_of_rails_are_of_nics_below_their_switches() -> None:
    leaves = tables.Leaves.find(RAILS)
    assert leaves and (leaves.leaf, leaves.uplinks()) == ("rail0", {"rail0-spine": "spine"})
    hosts = [(RAILS.nics[one][0], RAILS.nics[other][0]) for one, other in zip(leaves.near, leaves.far, strict=True)]
    assert all(one != other for one, other in hosts)
    specs = {cell.variant: cell.spec for cell in tables.tables_experiment(RAILS, DCQCN).cells}
    assert specs.keys() == {"incast-2", *(f"qps-{each}" for each in tables.QUEUE_PAIRS)}
    job = specs["qps-1"].jobs["f0"]
    ((*path,),) = job.routes("f0", job.transfers(job.profile.phases[-1])[0], RAILS)
    assert [hop.link.name for hop in path] == ["s0-0", "rail0-spine", "rail1-spine", "s1-1"]
    assert tables.reference_class(RAILS) == "Topology C (rail-optimized)"
    assert tables.reference_class(load_topology("leaf-spine-8x8")) == "Topology A (2-tier Clos)"


def test_a_trial_that_broke_off_before_its_first_iteration_has_no_figures() -> None:
    cells = tables.tables_experiment(load_topology("leaf-spine-8x8"), DCQCN).cells
    specs = {cell.variant: cell.spec.model_dump() for cell in cells if cell.variant.startswith("overlap")}

    class BrokenOff:
        def table(self, name: str, **_: Any) -> pa.Table:
            return schemas.schema(name).empty_table()

        def trials(self) -> list[dict[str, Any]]:
            return [{"trial": name, "variant": name, "spec": spec} for name, spec in specs.items()]

    run: Any = BrokenOff()
    played = PlayedTrials([run])
    measure = fabric_benchmarks.interference(played, tables.ALONE)
    assert fabric_benchmarks.benchmark_rows(played, {0: "overlap-0"}, measure) == {}


def test_flows_have_converged_when_all_are_near_their_fair_share() -> None:
    class Onset:
        """Two flows in equal steps from 10 ms on: the first falls from 9 to 5 Gbit/s, and the second rises from 1."""

        senders = ("s0", "s1")
        onset_ms, end_ms = 10.0, 410.0

        def sent_bytes(self, instants_ms: Any, *_: str, host: str) -> Any:
            first = np.interp(np.arange(500), [10, 210], [9.0, 5.0])  # Gbit/s, by ms
            rates = first if host == "s0" else 10 - first
            return np.interp(instants_ms, np.arange(500), np.cumsum(rates) * 1e6 / 8)

    trial: Any = Onset()
    row = fabric_benchmarks.convergence(trial)
    # The rates are within 10 % of 5 Gbit/s from 185 ms on, 175 ms after the onset; a window of 50 ms has that mean.
    assert row["convergence time, ms"] == pytest.approx(175 + fabric_benchmarks.WINDOW_MS / 2, abs=10)
    assert row["fair share, Gbit/s"] == pytest.approx(5)
