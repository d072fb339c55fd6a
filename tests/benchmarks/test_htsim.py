# SPDX-License-Identifier: Apache-2.0
"""Fat trees and flows that benchmarks write for csg-htsim (benchmarks/shared/htsim.py), read as its files."""

from collections import Counter
from pathlib import Path

import pytest

from benchmarks.shared import htsim
from roundabout.spec.flow_readers import read_scene

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(("hosts", "ports", "pods"), [(16, 4, 4), (256, 16, 4), (1024, 16, 16), (8192, 32, 32)])
def test_the_smallest_tree_has_an_even_number_of_pods(hosts: int, ports: int, pods: int) -> None:
    tree = htsim.smallest_tree(hosts)
    assert (tree.ports, tree.pods) == (ports, pods)
    # A switch below the core has all of its ports in use, and a core switch a link to each pod.
    degrees = Counter(end for ends in tree.list_links() for end in ends)
    assert {degrees[name] for name in degrees if name.startswith(("edge", "agg"))} == {ports}
    assert {degrees[name] for name in degrees if name.startswith("core")} == {pods}


def test_a_number_of_hosts_without_a_tree_is_refused() -> None:
    with pytest.raises(ValueError, match="found 24, expected"):
        htsim.smallest_tree(24)


@pytest.mark.parametrize("hosts", [16, 256])
def test_htsim_gets_the_same_links_and_flows(hosts: int, tmp_path: Path) -> None:
    tree = htsim.smallest_tree(hosts)
    traffic = htsim.Traffic(tree, flows=2, packets=3, packet_bytes=1024, gbps=50)
    (tmp_path / "flows").write_text(traffic.format())
    (tmp_path / "topology").write_text(tree.format(50))
    scene = read_scene(tmp_path / "flows", tmp_path / "topology", "tree")
    ours = [tuple(end.replace("edge", "tor") for end in ends) for ends in tree.list_links()]
    assert [link.ends for link in scene.topology.links] == ours
    assert len(scene.flows) == 2 * hosts
    for flow in scene.flows:
        assert flow.size == 3 * 1024
        path = scene.topology.path(f"h{flow.sender}", f"h{flow.receiver}")
        assert len(path) == htsim.LINKS
