# SPDX-License-Identifier: Apache-2.0
"""Topologies that `advise --migrate` takes from schedulers: Slurm's `topology.conf` and Volcano's HyperNodes."""

import pytest

from analysis.advice.topologies import read_topology
from roundabout.cli.main import main
from roundabout.spec import SpecError
from tests.analysis.advice.scheduler_files import (
    BLOCKS,
    HYPERNODES,
    LABEL,
    LEAVES,
    ONE_ROOT,
    PARALLEL_SPINES,
    PATTERN,
    SLURM_YAML,
    TWO_LEVELS,
    UPPER,
    hypernode,
    member,
)

pytestmark = pytest.mark.unit

GBPS = 48.0


def read(folder, text, name="topology.conf", hosts=()):
    (folder / name).write_text(text)
    return read_topology(str(folder / name), hosts, GBPS)


def switches_between(topology, one, other):
    return [hop.receiver for hop in topology.path(one, other)][:-1]


def test_slurms_samples_are_read(tmp_path):
    """The samples are from the man page topology.conf(5) and the Topology Guide of Slurm (doc/html/topology.shtml)."""
    topology, _ = read(tmp_path, ONE_ROOT)
    assert topology.hosts == tuple(f"dev{number}" for number in range(18))
    assert switches_between(topology, "dev0", "dev5") == ["s0"]
    assert switches_between(topology, "dev5", "dev6") == ["s0", "s3", "s1"]
    assert {link.payload_rate_gbps for link in topology.links} == {GBPS}
    topology, notes = read(tmp_path, TWO_LEVELS)
    assert (len(topology.hosts), topology.is_tree) == (16, True)
    assert {link.payload_rate_gbps for link in topology.links} == {GBPS}, "LinkSpeed has no unit"
    assert "one cable up, of --capacity (48 Gbit/s)" in notes[0]
    assert notes[1].startswith("LinkSpeed is not used")


def test_lines_may_be_continued_quoted_and_in_any_case(tmp_path):
    text = (
        'switchname = "rack 1" \\\n  NODES=gpu-node-[0001-0002].cluster # both\r\n\nSWITCHNAME=top Switches="rack 1"\n'
    )
    with pytest.raises(SpecError, match=r":4: Switches: found 'rack 1', expected hosts as in"):
        read(tmp_path, text)
    topology, notes = read(tmp_path, text.replace("rack 1", "Rack_1"))
    assert topology.hosts == ("gpu-node-0001.cluster", "gpu-node-0002.cluster")
    assert len(notes) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ONE_ROOT.replace("dev[6-11]", "dev[6-"), ":2: Nodes: found 'dev[6-', expected hosts as in node[01-03,07]"),
        (ONE_ROOT.replace("s1 Nodes", "s1 Node"), ":2: found the parameter 'Node', expected one of SwitchName, Nodes"),
        (ONE_ROOT.replace("s[0-2]", "s[0-2,7]"), ":4: found no switch s7, expected it in this file"),
        (ONE_ROOT.replace("dev[6-11]", "dev[5-11]"), ":2: found dev5 a second time (first in line 1), expected"),
        (ONE_ROOT.replace("SwitchName=s1", "SwitchName=s0"), ":2: found s0 a second time (first in line 1)"),
        (ONE_ROOT.replace("s2 Nodes", "s2 Switches=s1 Nodes"), ":3: found both Nodes and Switches of 's2'"),
        (ONE_ROOT.replace("=s2 ", " "), ":3: found 'SwitchName Nodes=dev[12-17]', expected parameters as in"),
        (ONE_ROOT.replace("SwitchName=s2 ", ""), ":3: found no SwitchName, expected a line such as"),
        (ONE_ROOT + "SwitchName=s4 Nodes=x\n", ":5: found no switch above both s3 and s4, expected one tree"),
        (PARALLEL_SPINES, ":8: found s0 below a second switch (first in line 7), expected each switch below one"),
        ("SwitchName=a Switches=b\nSwitchName=b Switches=a\n", ":1: found a loop of switches through a"),
        ("SwitchName=r Nodes=x\nSwitchName=a Switches=a\n", ":2: found a loop of switches through a"),
        ("SwitchName=s0\n", ": found no host, expected hosts below the switches"),
        ("# nothing\n", ": found no switch, expected lines such as SwitchName=s0"),
        (BLOCKS, ":1: found BlockName, of topology/block, expected lines of topology/tree"),
        ("RingName=ring0 Nodes=node[01-08]\n", ":1: found RingName, of topology/ring"),
    ],
)
def test_a_damaged_topology_conf_is_refused_with_the_line(tmp_path, text, message):
    with pytest.raises(SpecError) as refused:
        read(tmp_path, text)
    assert f"topology.conf{message}" in str(refused.value)


def test_slurms_topology_yaml_is_refused_by_its_name(tmp_path):
    """The sample is from the man page topology.yaml(5) of Slurm."""
    with pytest.raises(SpecError, match=r"found Slurm's topology\.yaml, expected a topology\.conf"):
        read(tmp_path, SLURM_YAML, "topology.yaml")


def test_volcanos_samples_are_read(tmp_path):
    """The samples are from "Network Topology Aware Scheduling" (volcano.sh/en/docs/network_topology_aware_scheduling).

    A list is what `kubectl get hypernodes -o yaml` prints.
    """
    topology, notes = read(tmp_path, HYPERNODES, "hypernodes.yaml")
    assert topology.hosts == tuple(f"node-{number}" for number in range(8))
    assert switches_between(topology, "node-0", "node-1") == ["s0"]
    assert switches_between(topology, "node-1", "node-2") == ["s0", "s4", "s1"]
    assert switches_between(topology, "node-0", "node-4") == ["s0", "s4", "s6", "s5", "s2"]
    assert len(notes) == 2
    items = "".join("- " + each.strip().replace("\n", "\n  ") + "\n" for each in HYPERNODES.split("---\n"))
    assert read(tmp_path, f"apiVersion: v1\nkind: List\nitems:\n{items}", "hypernodes.yaml")[0] == topology


def test_several_roots_are_below_a_virtual_one(tmp_path):
    """Volcano's scheduler has such a root in its memory ("How to Use HyperNode Auto Discovery")."""
    topology, _ = read(tmp_path, "---\n".join([*LEAVES, *UPPER]), "hypernodes.yaml")
    assert len(switches_between(topology, "node-0", "node-4")) == 5


def test_a_pattern_selects_hosts_of_jobs(tmp_path):
    """A pattern may match any part of a name, as Go's MatchString does in Volcano's hyper_node_info.go."""
    text = hypernode("s0", 1, member("node-0"), PATTERN)
    topology, notes = read(tmp_path, text, "hypernodes.yaml", ("node-10", "node-2"))
    assert topology.hosts == ("node-0", "node-10")
    assert notes[-1].startswith("regexMatch selects among the hosts of --jobs")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (hypernode("rack-0", 1, LABEL), ":9: spec.members[0].selector: found labelMatch, expected names of nodes"),
        (hypernode("s0", 1, member("x", "Pod")), ":8: spec.members[0].type: found 'Pod', expected Node or HyperNode"),
        (
            HYPERNODES.replace('"node-7"', ""),
            ":63: spec.members[1].selector.exactMatch.name: found '', expected a name",
        ),
        (HYPERNODES.replace('"s4"', '"s7"'), ":100: found no switch s7, expected it in this file"),
        (HYPERNODES.replace('"s5"', '"s4"').replace("name: s6", "name: s5"), ": found s5 a second time (first in"),
        (HYPERNODES.replace('"s2"', '"s1"'), ":84: found s1 below a second switch (first in line 68)"),
        (HYPERNODES.replace("HyperNode\nmetadata", "Job\nmetadata", 1), ":2: kind: found 'Job', expected HyperNode"),
        (
            hypernode("s0", 1, PATTERN.replace("01]", "01")),
            ":9: spec.members[0].selector: found the pattern 'node-[01'",
        ),
        (hypernode("s0", 2, PATTERN.replace("Node", "HyperNode")), ":9: spec.members[0].selector: found regexMatch"),
        (hypernode("s0", 1, member("x") + "      regexMatch:\n"), "found exactMatch, regexMatch, expected one of"),
        (HYPERNODES.replace("---", "------", 1), ":17: found none, expected ':'"),
    ],
)
def test_damaged_hypernodes_are_refused_with_the_line(tmp_path, text, message):
    with pytest.raises(SpecError) as refused:
        read(tmp_path, text, "hypernodes.yaml")
    assert message in str(refused.value)


def test_a_file_without_rates_needs_a_capacity(tmp_path, capsys):
    (tmp_path / "topology.conf").write_text(ONE_ROOT)
    assert main(["advise", "x.csv", "--migrate", "--topology", str(tmp_path / "topology.conf")]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "topology.conf: found no --capacity, expected it" in said
    assert "a scheduler's file has no rates" in said
