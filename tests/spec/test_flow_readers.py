# SPDX-License-Identifier: Apache-2.0
"""Files of htsim and HPCC's ns-3 as experiments. All inputs are written here, in the formats of the programs."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from roundabout.cli.main import main
from roundabout.core.errors import UsageError
from roundabout.models.packets import Fabric
from roundabout.models.packets.trial import play_trial
from roundabout.spec import Experiment, Topology, load_experiment
from roundabout.spec.fabrics import write_topology
from roundabout.spec.flow_readers import Scene, read_scene
from roundabout.spec.reader.yaml_source import parse
from roundabout.testbeds.packets.support import find_unreached_rates

pytestmark = pytest.mark.unit

MATRIX = """# three flows
Nodes 8
Connections 3
0->7 id 1 start 0 size 40960
7->0 id 2 start 2500000 size 40960 prio 3

1->7 start 0 size 81920
"""
TREE = """Nodes 8
Tiers 3
Podsize 4

# racks
Tier 0
Downlink_speed_Gbps 200
Radix_Down 2
Radix_Up 2
Downlink_Latency_ns 1000

Tier 1
Downlink_speed_Gbps 200
Radix_Down 2
Radix_Up 4
Downlink_Latency_ns 1000

Tier 2
Downlink_speed_Gbps 100
Radix_Down 4
Downlink_Latency_ns 500
Bundle 2
Queue_Down 100000
"""
STAR = """4 1 3
2
0 2 100Gbps 1000ns 0
1 2 100Gbps 0.001ms 0.0
3 2 25000Mbps 2us 0.000000
First line: total node #, switch node #, link #
"""
FLOWS = """2
0 3 3 100 102400 2
1 3 3 101 1024 2.00001
0 1 3 100 5000 2.1

First line: # of flows
"""


def scene(folder: Path, flows: str = MATRIX, topology: str = TREE) -> Scene:
    """Return the scene of two texts."""
    for name, text in (("flows", flows), ("topology", topology)):
        (folder / name).write_text(text)
    return read_scene(folder / "flows", folder / "topology", "scene")


def damage(text: str, before: str, after: str) -> str:
    """Return a text whose first `before` is replaced."""
    assert before in text
    return text.replace(before, after, 1)


def refusal(folder: Path, flows: str = MATRIX, topology: str = TREE) -> str:
    """Return the message of the error about two texts."""
    with pytest.raises(UsageError) as caught:
        scene(folder, flows, topology)
    return caught.value.message


def load(found: Scene, folder: Path) -> Experiment:
    """Return the experiment of a scene, from its two files."""
    (folder / "topologies").mkdir()
    (folder / "topologies" / "scene.yaml").write_text(write_topology(found.topology))
    (folder / "scene.yaml").write_text(found.experiment("scene"))
    return load_experiment(folder / "scene.yaml")


def test_a_tree_of_three_tiers_has_its_bundles_rates_and_latencies(tmp_path: Path) -> None:
    """The tree has the shape of htsim's topologies/test.topo: two pods, and four core switches by two links each."""
    topology = scene(tmp_path).topology
    tiers = Counter(link.name.split("-")[1].rstrip("0123456789") for link in topology.links)
    assert tiers == {"tor": 8, "agg": 8, "core": 16}
    assert Counter(link.line_rate_gbps for link in topology.links) == {200.0: 16, 100.0: 16}
    far = topology.path("h0", "h7")
    assert [topology.hop_delay_us(hop) for hop in far] == [1.0, 1.0, 0.5, 0.5, 1.0, 1.0]
    assert len(topology.path("h0", "h1")) == 2
    assert topology.has_parallel_links("agg0", "core0")
    delays = topology.delays
    assert (delays.nic_us, delays.mark_to_cnp_us, delays.cnp_to_cut_us, delays.cnp_jitter_us) == (0, 0, 0, 0)


def test_flows_are_jobs_that_send_once(tmp_path: Path) -> None:
    found = scene(tmp_path)
    jobs = load(found, tmp_path).cells[0].spec.jobs
    assert [(each.workers, each.profile.comm_bytes, each.arrives_ms) for each in jobs.values()] == [
        (("h0", "h7"), 40960, 0.0),
        (("h7", "h0"), 40960, 0.0025),
        (("h1", "h7"), 81920, 0.0),
    ]
    assert {job.iterations for job in jobs.values()} == {None}
    assert [each.split(":")[0] for each in found.unused] == ["prio of 1 flows", "queue_down"]


def test_switch_latency_delays_each_packet(tmp_path: Path) -> None:
    slow = TREE.replace("Downlink_Latency_ns", "Switch_Latency_ns 300\nDownlink_Latency_ns")
    topology = scene(tmp_path, topology=slow).topology
    assert sum(topology.hop_delay_us(hop) for hop in topology.path("h0", "h7")) == pytest.approx(5.0 + 5 * 0.3)


def test_a_flow_takes_the_time_that_its_packets_take(tmp_path: Path) -> None:
    """Ten packets of 4,096 bytes over six links of at least 100 Gbit/s: by hand, in ps, to the receiver's end."""
    found = scene(tmp_path, flows="Nodes 8\nConnections 1\n0->7 start 0 size 40960\n")
    played = play_trial(load(found, tmp_path).cells[0].spec, 1, Fabric())
    packet_us = {gbps: 4096 * 8 / (gbps * 4148 / 4238) / 1e3 for gbps in (100, 200)}
    # Bytes come into being at the narrowest link's rate; the last packet then crosses four fast and two slow links.
    expected_us = 5.0 + 10 * packet_us[100] + 4 * packet_us[200] + 2 * packet_us[100]
    end_us = played.iterations["f1"][1][0]["end_ps"] / 1e6
    assert end_us == pytest.approx(expected_us, abs=1e-3)


def test_hpcc_reads_as_many_flows_as_the_first_line_says(tmp_path: Path) -> None:
    found = scene(tmp_path, FLOWS, STAR)
    jobs = load(found, tmp_path).cells[0].spec.jobs
    assert [(each.workers, each.profile.comm_bytes) for each in jobs.values()] == [
        (("h0", "h3"), 102400),
        (("h1", "h3"), 1024),
    ]
    assert [each.arrives_ms for each in jobs.values()] == pytest.approx([0.0, 0.01])
    assert found.unused == (
        "ports: another hash chooses paths",
        "2 further lines: HPCC's program reads 2 flows, too",
        "the 2 s before the first flow",
        "1 further lines: HPCC's program reads 3 links, too",
    )


@pytest.mark.parametrize("name", ["null", "12"])
def test_a_name_that_yaml_reads_as_another_value_is_a_text(tmp_path: Path, name: str) -> None:
    written = parse(scene(tmp_path).experiment(name), "experiment").root
    assert (written["name"], written["topology"]) == (name, name)


@pytest.mark.parametrize(("flows", "topology"), [(MATRIX, TREE), (FLOWS, STAR)])
def test_roce_packets_reach_the_payload_rates(tmp_path: Path, flows: str, topology: str) -> None:
    spec = load(scene(tmp_path, flows, topology), tmp_path).cells[0].spec
    assert list(find_unreached_rates(spec)) == []


def test_hpcc_flows_alone_take_the_time_of_packets_of_1024_bytes(tmp_path: Path) -> None:
    """HPCC's MTU leaves RoCE 1,024 bytes of 1,106 on the link, of 25 Gbit/s to host 3."""
    jobs = load(scene(tmp_path, FLOWS, STAR), tmp_path).cells[0].spec.jobs
    assert jobs["f1"].profile.phases[0].alone_ms == pytest.approx(102400 * 8 / (25e6 * 1024 / 1106), rel=1e-4)


def test_hpcc_rates_and_delays_have_units(tmp_path: Path) -> None:
    topology = scene(tmp_path, FLOWS, STAR).topology
    from_hosts = [
        (hop.link.line_rate_gbps, topology.hop_delay_us(hop))
        for hop in map(topology.first_hop, topology.hosts, [0] * 3)
    ]
    assert from_hosts == [(100.0, 1.0), (100.0, 1.0), (25.0, 2.0)]
    assert (topology.hosts, topology.switches) == (("h0", "h1", "h3"), ("w2",))


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("0->7 id 1", "0->8 id 1", "flows:4: flow: found '8', expected a whole number from 0 to 7"),
        ("0->7 id 1", "0-7 id 1", "flows:4: found '0-7', expected a flow"),
        ("0->7 id 1", "7->7 id 1", "flows:4: flow: found 7 at both ends"),
        ("id 2", "id 1", "flows:5: id: found 1, as in line 4"),
        ("start 2500000", "trigger 1", "flows:5: trigger: found"),
        ("prio 3", "send_done_trigger 1", "flows:5: send_done_trigger: found"),
        ("prio 3", "msg 2", "flows:5: msg: found"),
        ("prio 3", "colour 3", "flows:5: flow: found 'colour', expected one of"),
        ("prio 3", "size 3", "flows:5: flow: found 'size' twice"),
        ("size 81920", "", "flows:7: size: found nothing"),
        ("size 81920", "size 0", "flows:7: size: found '0'"),
        ("size 81920", "size 8e4", "flows:7: size: found '8e4'"),
        ("start 0 size 81920", "start -1 size 81920", "flows:7: start: found '-1'"),
        ("Nodes 8", "Nodes 16", "flows: Nodes: found 16, expected 8, as "),
        ("Connections 3", "Connections 4", "flows: Connections: found 3 flows, expected 4"),
        ("Connections 3", "Connections 3\nFailures 1", "flows: Failures: found 1, expected 0"),
        ("Connections 3", "Connections 3\nNodes 8", "flows:4: Nodes: found it twice"),
        ("Connections 3", "Connections", "flows:3: Connections: found 0 values"),
        ("Connections 3", "", "flows: Connections: found no such line"),
    ],
)
def test_a_damaged_connection_matrix_is_refused(tmp_path: Path, before: str, after: str, message: str) -> None:
    assert message in refusal(tmp_path, flows=damage(MATRIX, before, after))


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("Tiers 3", "Tiers 4", "topology: tiers: found 0, 1, 2 of 4"),
        ("Podsize 4\n", "", "topology: podsize: found no such line"),
        ("Podsize 4", "Podsize 3", "topology:3: podsize: found 3, expected a divisor of the 8 nodes"),
        (
            "Radix_Down 2",
            "Radix_Down 3",
            "topology:3: podsize: found 4, expected a multiple of tier 0's radix_down of 3",
        ),
        (
            "Podsize 4",
            "Podsize 4\nFailed_Links 1",
            "topology:4: failed_links: found '1', expected no such line: failed",
        ),
        ("Tier 1", "Tier 0", "topology:12: tier: found 0 twice"),
        ("Radix_Up 2\n", "", "topology:6: radix_up: found nothing in tier 0"),
        ("Radix_Up 4", "Radix_Up 3", "topology:18: bundle: found 2, expected a divisor"),
        ("Radix_Down 4", "Radix_Down 2", "topology:18: radix_down: found 2, expected 4: 2 below, by 2 links each"),
        ("Radix_Up 2", "Radix_Up 2\nOversubscribed 4", "topology:6: oversubscribed: found 4, expected 1"),
        (
            "Downlink_Latency_ns 500",
            "Downlink_Latency_us 500",
            "topology:21: found 'downlink_latency_us', expected one of",
        ),
        ("Bundle 2", "Bundle 2\nBundle 2", "topology:23: found 'bundle' twice, expected each field once"),
        ("Bundle 2", "Bundle two", "topology:22: bundle: found 'two'"),
        ("Bundle 2", "Bundle 2\nRadix_Up 2", "topology:18: radix_up: found 2, expected none in the top tier"),
        ("Bundle 2", "Bundle 2\nSwitch_Latency_ns 7", "switch_latency_ns: found 0 ns and 7 ns"),
    ],
)
def test_a_damaged_tree_is_refused(tmp_path: Path, before: str, after: str, message: str) -> None:
    assert message in refusal(tmp_path, topology=damage(TREE, before, after))


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("4 1 3", "4 1 5", "topology: found 5, expected 6 lines of switches and links"),
        ("4 1 3", "4 1", "topology:1: found 2 values, expected 3: nodes, switches, links"),
        ("2\n0 2", "2 3\n0 2", "topology:2: switches: found 2 numbers, expected 1"),
        ("4 1 3\n2\n", "4 2 3\n2 2\n", "topology:2: switches: found 1 twice"),
        ("100Gbps", "100GBps", "topology:3: rate: found '100GBps'"),
        ("100Gbps", "100", "topology:3: rate: found '100'"),
        ("1000ns", "1000", "topology:3: delay: found '1000'"),
        ("ns 0", "ns 0.01", "topology:3: error rate: found 0.01, expected 0"),
        ("1 2 100", "1 4 100", "topology:4: node: found '4'"),
        ("1 2 100", "1 0 100", "topology:4: node: found hosts 1 and 0, expected a switch at one end"),
        ("1 2 100", "0 2 100", "topology:4: node: found a second link of host 0, expected one link of each host"),
        ("1 2 100", "2 2 100", "topology: found 0 links at host h1"),
        ("1 2 100Gbps", "1 2 0Gbps", "topology:4: links[1].line_rate_gbps: found 0"),
        ("3 2 25000Mbps", "2 2 25000Mbps", "topology: found 0 links at host h3"),
        ("4 1 3", "Nodes 4", "topology: found a file of htsim, expected one of HPCC's ns-3"),
    ],
)
def test_a_damaged_topology_of_hpcc_is_refused(tmp_path: Path, before: str, after: str, message: str) -> None:
    assert message in refusal(tmp_path, FLOWS, damage(STAR, before, after))


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("2\n0", "9\n0", "flows: found 4, expected 9 flows"),
        ("2\n0", "2 2\n0", "flows:1: found 2 values, expected 1"),
        ("0 3 3", "2 3 3", "flows:2: flow: found 2, expected a host of"),
        ("0 3 3", "3 3 3", "flows:2: flow: found 3 at both ends"),
        ("0 3 3 100", "0 3 100", "flows:2: found 5 values, expected 6"),
        ("102400 2", "102400 two", "flows:2: start in s: found 'two'"),
        ("102400 2", "102400 2e6", "flows:2: start in s: found '2e6', expected seconds, as a decimal number from 0 to"),
        ("102400 2", "102400 3", "flows:3: start in s: found 2.00001, expected no earlier than 3 above"),
        ("102400", "0", "flows:2: bytes: found '0'"),
        ("0 3 3 100", "0 3 9 100", "flows:2: priority group: found '9'"),
    ],
)
def test_a_damaged_flow_list_of_hpcc_is_refused(tmp_path: Path, before: str, after: str, message: str) -> None:
    assert message in refusal(tmp_path, damage(FLOWS, before, after), STAR)


def test_more_flows_at_a_host_than_a_topology_has_workers_are_refused(tmp_path: Path) -> None:
    lines = "".join(f"{number % 7}->7 start 0 size 1\n" for number in range(5000))
    with pytest.raises(UsageError, match="flows: found 5000 flows at host 7, expected 4096 at most of a host"):
        scene(tmp_path, f"Nodes 8\nConnections 5000\n{lines}")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change to a folder with a connection matrix and its fat tree."""
    monkeypatch.chdir(tmp_path)
    Path("flows.cm").write_text(MATRIX)
    Path("tree.topo").write_text(TREE)


@pytest.mark.usefixtures("files")
def test_new_writes_an_experiment_that_can_be_planned(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "mine", "--from", "flows.cm", "--topology", "tree.topo"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "not used: prio of 1 flows: all flows have one priority",
        "not used: queue_down: whether ports drop, trim or pause is an option of htsim's program",
        "topologies/mine.yaml",
        "mine.yaml",
        "  roundabout run mine.yaml --testbed packets",
    ]
    assert main(["validate", "mine.yaml"]) == 0


@pytest.mark.usefixtures("files")
def test_new_prints_only_its_error_where_the_file_exists(capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.yaml").touch()
    assert main(["new", "mine", "--from", "flows.cm", "--topology", "tree.topo"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "choose another name, or delete the file" in printed.err


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", "flows.cm"], "--topology: found nothing"),
        (["--from", "absent.cm", "--topology", "tree.topo"], "--from: found 'absent.cm'"),
        (["--from", "leaf-spine", "--topology", "tree.topo"], "--topology: found tree.topo, expected it"),
        (["--from", "tree.topo", "--topology", "tree.topo"], "tree.topo:2: found 'Tiers'"),
        (["--from", "flows.cm", "--topology", "tree.topo", "--servers", "16"], "--servers: found 16"),
        (["--oversubscription", "1"], "--oversubscription: found 1, expected it beside a fabric or traces alone"),
    ],
)
def test_new_wants_flows_and_their_topology(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["new", "mine", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not Path("mine.yaml").exists()


@st.composite
def trees(draw: st.DrawFn) -> tuple[str, int, tuple[int, int, int]]:
    """Return a fat tree's file, its number of hosts, and its numbers of tor, agg and core switches."""
    below, tors, aggs, cores, pods = (draw(st.integers(1, 3)) for _ in range(5))
    bundles = [draw(st.integers(1, 2)) for _ in range(2)]
    hosts = max(below * tors * pods, 2)
    below = hosts // (tors * pods) if hosts == below * tors * pods else 2
    up = aggs * bundles[0], cores * bundles[1]
    tiers = [(below, up[0], 1), (tors * bundles[0], up[1], bundles[0]), (pods * bundles[1], None, bundles[1])]
    text = f"Nodes {below * tors * pods}\nTiers 3\nPodsize {below * tors}\n"
    for number, (radix_down, radix_up, bundle) in enumerate(tiers):
        text += (
            f"Tier {number}\nDownlink_speed_Gbps 10\nRadix_Down {radix_down}\nDownlink_Latency_ns 0\nBundle {bundle}\n"
        )
        if radix_up:
            text += f"Radix_Up {radix_up}\nOversubscribed {max(radix_down // radix_up, 1)}\n"
    return text, below * tors * pods, (tors * pods, aggs * pods, aggs * cores)


@given(trees())
def test_any_tree_has_its_switches_and_joins_its_hosts(
    tmp_path_factory: pytest.TempPathFactory, tree: tuple[str, int, tuple[int, int, int]]
) -> None:
    text, hosts, switches = tree
    flows = f"Nodes {hosts}\nConnections 1\n0->{hosts - 1} start 0 size 1\n"
    topology = scene(tmp_path_factory.mktemp("tree"), flows, text).topology
    kinds = Counter(each.rstrip("0123456789") for each in topology.switches)
    assert (len(topology.hosts), *(kinds[name] for name in ("tor", "agg", "core"))) == (hosts, *switches)
    assert len(topology.path("h0", f"h{hosts - 1}")) in (2, 4, 6)
    assert Topology.model_validate(parse(write_topology(topology), "topology").root) == topology


@given(st.sampled_from([(MATRIX, TREE), (FLOWS, STAR)]), st.data())
def test_any_damage_is_an_error_or_an_experiment(
    tmp_path_factory: pytest.TempPathFactory, files: tuple[str, str], data: st.DataObject
) -> None:
    """A word of either file is replaced by another one, or dropped."""
    number = data.draw(st.integers(0, 1))
    words = files[number].split(" ")
    words[data.draw(st.integers(0, len(words) - 1))] = data.draw(
        st.sampled_from(
            ["", "0", "7", "-1", "1e9", "99999999999999999999", "nan", "2\n", "Tier 1\n", "->", "0->1", "\0"]
        )
    )
    damaged = [*files]
    damaged[number] = " ".join(words)
    folder = tmp_path_factory.mktemp("damage")
    try:
        found = scene(folder, *damaged)
    except UsageError:
        return
    assert len(load(found, folder).cells[0].spec.jobs) == len(found.flows)
