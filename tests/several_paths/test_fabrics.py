# SPDX-License-Identifier: Apache-2.0
"""Generated fabrics: their shape, and `roundabout new --from`."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from roundabout.cli.main import main
from roundabout.core.errors import UsageError
from roundabout.spec import Topology, load_experiment, load_topology
from roundabout.spec.fabrics import FABRICS, Fabric, fat_tree, leaf_spine, rail_optimized
from roundabout.spec.routing import Routing

pytestmark = pytest.mark.unit

SIZES = st.sampled_from([2, 3, 16, 54])


def shares(topology: Topology, switch: str) -> tuple[int, int]:
    """Return how many links of a switch lead to hosts, and how many to other switches."""
    ends = [link.ends for link in topology.links if switch in link.ends]
    below = sum(bool(set(each) & set(topology.hosts)) for each in ends)
    return below, len(ends) - below


def test_a_leaf_spine_has_one_link_from_each_leaf_to_each_spine() -> None:
    topology = leaf_spine(20, 2).topology("pod")
    assert [shares(topology, f"leaf{number}") for number in range(3)] == [(8, 4), (8, 4), (4, 4)]
    assert [shares(topology, f"spine{number}") for number in range(4)] == [(0, 3)] * 4
    assert topology.bottleneck.name == "leaf0-spine0"


def test_a_fat_tree_has_the_published_counts() -> None:
    """Al-Fares et al., SIGCOMM 2008: (5/4) k^2 switches of k ports, k^3/4 hosts; paths between pods have six links."""
    topology = fat_tree(54, 1).topology("pod")
    assert (len(topology.hosts), len(topology.switches)) == (54, 45)
    assert {sum(shares(topology, switch)) for switch in topology.switches} == {6}
    assert {len(topology.path("s0", each)) for each in topology.hosts} == {0, 2, 4, 6}


def test_flows_between_two_hosts_of_a_fat_tree_take_all_its_paths() -> None:
    topology = fat_tree(16, 1).topology("pod")
    cores = {topology.path("s0", "s15", port)[2].receiver for port in range(49152, 49352)}
    assert cores == {f"core{number}" for number in range(4)}


def test_a_rail_joins_nics_of_one_number_and_other_rails_lie_beyond_the_spine() -> None:
    topology = rail_optimized(64, 1).topology("pod")
    assert (len(topology.hosts), topology.gpus_per_host, topology.has_rails) == (64, 8, True)
    assert [hop.link.name for hop in topology.path("s3", "s31", nics=(5, 5))] == ["s3-5", "s31-5"]
    assert len(topology.path("s3", "s31", nics=(5, 4))) == len(topology.path("s3", "s32", nics=(5, 5))) == 4
    assert shares(topology, "rail1-7") == (32, 32)


@given(st.sampled_from(sorted(FABRICS)), SIZES, st.sampled_from([1, 2]))
def test_any_fabric_is_a_topology_whose_paths_go_up_and_down(name: str, servers: int, oversubscription: int) -> None:
    try:
        fabric = FABRICS[name](servers, oversubscription)
    except UsageError:
        return
    topology = fabric.topology("pod")
    assert len(set(topology.hosts)) == servers
    for other in (topology.hosts[-1], topology.hosts[len(topology.hosts) // 2]):
        path = topology.path(topology.hosts[0], other)
        switches = [hop.receiver for hop in path[:-1]]
        assert len(set(switches)) == len(switches)
        assert not set(switches) & set(topology.hosts)


@pytest.mark.parametrize(
    ("fabric", "servers", "oversubscription", "said"),
    [
        (fat_tree, 17, 1, "found 17, expected k^3/4 of a fat tree, for an even k: 2, 16, 54, 128"),
        (fat_tree, 16, 2, "found 2, expected 1: a fat tree has full bisection"),
        (leaf_spine, 16, 3, "found 3, expected a divisor of 8: 1, 2, 4, 8"),
        (rail_optimized, 6, 4, "found 4, expected a divisor of 6: 1, 2, 3, 6"),
    ],
)
def test_a_size_that_no_fabric_has_is_named(
    fabric: Callable[[int, int], Fabric], servers: int, oversubscription: int, said: str
) -> None:
    with pytest.raises(UsageError) as raised:
        fabric(servers, oversubscription)
    assert said in raised.value.message


@pytest.mark.parametrize("name", sorted(FABRICS))
def test_a_new_experiment_has_its_fabric(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "my-pod", "--from", name]) == 0
    fabric = FABRICS[name](16, 1)
    assert load_topology("topologies/my-pod.yaml") == fabric.topology("my-pod")
    experiment = load_experiment("my-pod.yaml")
    assert experiment.cells[0].spec.topology.routing == Routing(name=fabric.routing)
    assert main(["validate", "my-pod.yaml", "topologies/my-pod.yaml"]) == 0
    seeds = Path("my-pod.yaml").read_text().replace("# routing.seed: [", "routing.seed: [")
    Path("my-pod.yaml").write_text(seeds)
    assert {cell.spec.topology.routing.seed for cell in load_experiment("my-pod.yaml").cells} == {1, 2, 3, 4}
    Path("my-pod.yaml").unlink()
    capsys.readouterr()
    assert main(["new", "my-pod", "--from", name]) == 2
    said = capsys.readouterr().err
    assert "found a file topologies/my-pod.yaml, expected none of that name" in said
    assert "use it: topology: my-pod" in said
    assert not Path("my-pod.yaml").exists()


@pytest.mark.parametrize(("name", "servers"), [("leaf-spine", 9), ("leaf-spine", 4), ("rail-optimized", 33)])
def test_a_leaf_may_have_one_host(name: str, servers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "my-pod", "--from", name, "--servers", str(servers)]) == 0
    jobs = load_experiment("my-pod.yaml").cells[0].spec.jobs.values()
    assert len({worker for job in jobs for worker in job.workers}) == 4


def test_a_fabric_of_less_than_four_hosts_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "my-pod", "--from", "fat-tree", "--servers", "2"]) == 2
    assert "--servers: found 2, expected 4 at least" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_an_unknown_fabric_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "my-pod", "--from", "torus"]) == 2
    assert "--from: found 'torus', expected one of leaf-spine, fat-tree, rail-optimized" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
