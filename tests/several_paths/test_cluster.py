# SPDX-License-Identifier: Apache-2.0
"""The thesis' cluster with 48 links: parallel cables, racks and pods, polarization."""

from collections import Counter

import pytest

from roundabout.core.paths import ROOT
from roundabout.models.cluster.placement import host_tree_of
from roundabout.spec import SpecError, load_topology
from roundabout.spec.routing import Routing, source_port

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(("rule", "ways"), [("same", 2), ("per-switch", 4)])
def test_equal_hashes_polarize(rule: str, ways: int) -> None:
    """Two levels of two cables have four ways up; where both levels hash alike, flows use two of them."""
    fabric = load_topology("cluster-24-48links").with_routing(Routing(name="ecmp", hash=rule))
    routes = (fabric.path("s0", "s23", source_port("j", 0, 1, number)) for number in range(200))
    assert len({tuple(hop.link.name for hop in route[1:3]) for route in routes}) == ways


def test_parallel_cables_are_distinguished() -> None:
    fabric = load_topology("cluster-24-48links")
    directions = {fabric.direction(link, *ends) for link in fabric.links for ends in (link.ends, link.ends[::-1])}
    assert len(directions) == 2 * len(fabric.links)
    assert ("agg0", "core", "agg0-a") in directions
    assert ("tor0", "agg0") in directions


def test_a_cluster_with_several_paths_has_racks_and_pods() -> None:
    fabric = load_topology("cluster-24-48links")
    assert (len(fabric.hosts), len(fabric.switches), len(fabric.links)) == (24, 13, 48)
    assert {link.line_rate_gbps for link in fabric.links} == {50}
    ground = host_tree_of(fabric)
    sizes = Counter(
        (int(height), int(end - begin))
        for begin, end, height in zip(ground.begins, ground.ends, ground.heights, strict=True)
    )
    assert sizes == {(0, 1): 24, (1, 4): 6, (2, 8): 3, (3, 24): 1}
    assert [ground.locality(workers) for workers in (("s0", "s3"), ("s0", "s4"))] == [1, 2]
    crossed = [link for link, _ in ground.links_between("s0", "s8")]
    assert crossed == [hop.link.name for hop in fabric.path("s0", "s8")]


def test_unknown_routing_is_refused(tmp_path) -> None:
    text = (ROOT / "experiments/topologies/cluster/cluster-24-48links.yaml").read_text()
    (tmp_path / "topologies").mkdir()
    (tmp_path / "topologies/cluster-24-48links.yaml").write_text(text.replace("name: static", "name: rip"))
    with pytest.raises(
        SpecError,
        match=r"routing.name: found 'rip', expected 'static', .*'bitmap' or 'reps'",
    ):
        load_topology("cluster-24-48links", tmp_path)
