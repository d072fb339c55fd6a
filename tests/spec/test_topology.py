# SPDX-License-Identifier: Apache-2.0
"""Topologies: trees only, and the way between two hosts."""

import re
from pathlib import Path

import pytest

from roundabout.spec import SpecError, load_topology
from roundabout.spec.delays import Delays
from roundabout.spec.frames import payload_share
from roundabout.spec.topology import Topology

pytestmark = pytest.mark.unit

TREE = """\
name: tree
about: three hosts, two switches
line_rate_gbps: 50
payload_rate_gbps: 43
queue: lossy
hosts: [a, b, c]
switches: [x, y]
links:
  - {name: A, ends: [a, x]}
  - {name: B, ends: [b, x]}
  - {name: C, ends: [y, c], line_rate_gbps: 25, payload_rate_gbps: 20}
  - {name: XY, ends: [x, y], bottleneck: true}
"""


def load(folder: Path, text: str) -> object:
    (folder / "topologies").mkdir(exist_ok=True)
    (folder / "topologies" / "tree.yaml").write_text(text)
    return load_topology("tree", folder)


def test_the_way_between_hosts_and_its_narrowest_link(tmp_path: Path) -> None:
    load(tmp_path, TREE)
    tree = load_topology("tree", tmp_path)
    assert [(hop.link.name, hop.sender, hop.receiver) for hop in tree.path("a", "c")] == [
        ("A", "a", "x"), ("XY", "x", "y"), ("C", "y", "c")
    ]  # fmt: skip
    assert [hop.link.name for hop in tree.path("c", "a")] == ["C", "XY", "A"]
    assert (tree.path_payload_gbps("a", "c"), tree.path_payload_gbps("a", "b")) == (20, 43)
    assert tree.links[0].line_rate_gbps == 50


def test_the_dumbbell_has_one_shared_link() -> None:
    dumbbell = load_topology("dumbbell-2x2")
    first, second = ({hop.link.name for hop in dumbbell.path(*pair)} for pair in (("s0", "s2"), ("s1", "s3")))
    assert first & second == {"L1"}
    assert [link.name for link in dumbbell.links if link.bottleneck] == ["L1"]


@pytest.mark.parametrize(
    ("passage", "replacement", "said"),
    [
        ("[x, y], bottleneck: true", "[a, y]", r"links: found 2 links at host a, expected exactly one"),
        ("  - {name: XY, ends: [x, y], bottleneck: true}\n", "", r"links: found no way from a to"),
        ("[x, y], bottleneck: true", "[x, z]", r":12: links\[3\].ends: found 'z', expected hosts or switches"),
        ("{name: XY", "{name: YX, ends: [x, y]}\n  - {name: XY", r":13: links\[4\].ends: found a loop closed by XY"),
        ("name: B,", "name: A,", r":8: links: found 'A' twice"),
        ("[a, b, c]", "[a, b, a]", r":6: hosts: found 'a' twice"),
        ("[x, y]\n", "[x, a]\n", r":6: hosts: found 'a' twice"),
        ("[a, b, c]", "[a, b, c, d]", r"links: found 0 links at host d"),
        ("payload_rate_gbps: 20", "payload_rate_gbps: 26", r":11: links\[2\]: .* no higher than the line rate"),
        (
            "payload_rate_gbps: 43",
            "payload_rate_gbps: 47.2",
            r":9: links\[0\]: found 47.2 Gbit/s of payload, expected at most 47.07, what headers leave of 50 at",
        ),
        ("payload_rate_gbps: 43\n", "", r"payload_rate_gbps: found nothing"),
        ("ends: [a, x]", "ends: [a, x, y]", r":9: links\[0\].ends: found a list of 3, expected at most 2"),
        ("queue: lossy", "queue: leaky", r":5: queue: found 'leaky', expected 'lossless' or 'lossy'"),
        (
            "queue: lossy",
            "queue: lossless\nqueue_bytes: 9",
            r":6: queue_bytes: found 9, expected it with `queue: lossy`",
        ),
        ("queue: lossy", "queue: lossless\ntrimming: true", r":6: trimming: found true, expected it with `queue"),
        ("queue: lossy", "queue: lossy\nqueue_bytes: 0", r":6: queue_bytes: found 0"),
        ("queue: lossy", "queue: lossy\nbuffer: {bytes: 9}", r":6: buffer.alpha: found nothing"),
        ("queue: lossy", "queue: lossy\nbuffer: {bytes: 9, alpha: 0}", r":6: buffer.alpha: found 0"),
        ("queue: lossy", "queue: lossy\nbuffer: {bytes: 0, alpha: 1}", r":6: buffer.bytes: found 0"),
        (
            "queue: lossy",
            "queue: lossy\nbuffer: {bytes: 9, alpha: 1, headroom_bytes: 5}",
            r":6: buffer.headroom_bytes: found 5, expected it with `queue: lossless` alone",
        ),
        ("[a, b, c]", "[a, B, c]", r":6: hosts\[1\]: found 'B', expected letters"),
    ],
)
def test_a_topology_that_is_no_tree_is_refused(tmp_path: Path, passage: str, replacement: str, said: str) -> None:
    assert passage in TREE
    with pytest.raises(SpecError, match=said):
        load(tmp_path, TREE.replace(passage, replacement, 1))


TAKEN = ["lo", "all", "default", "sit0", "localhost", "ungrouped", "rack", "switches", "lab", "testbed", "controller"]


@pytest.mark.parametrize("name", [*TAKEN, '"on"', '"null"'])
@pytest.mark.parametrize(("node", "place"), [("a", r":6: hosts\[0\]"), ("y", r":7: switches\[1\]")])
def test_a_name_that_means_something_else_is_refused(tmp_path: Path, name: str, node: str, place: str) -> None:
    text = re.sub(rf"\b{node}\b(?=[,\]])", name, TREE)
    bare = name.strip('"')
    with pytest.raises(SpecError, match=f"{place}: found '{bare}', expected another name: "):
        load(tmp_path, text)


@pytest.mark.parametrize("name", [".", "..", "a/b", "-a", "A", "a b", "a_b", "é", "a" * 13, "$(id)", "a%d", ""])
def test_an_invalid_host_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(SpecError, match=r":6: hosts\[0\]: found .*, expected "):
        load(tmp_path, TREE.replace("hosts: [a,", f'hosts: ["{name}",'))


def test_longer_packets_leave_more_for_payload(tmp_path: Path) -> None:
    text = TREE.replace("payload_rate_gbps: 43", "payload_rate_gbps: 49.5")
    with pytest.raises(SpecError, match="at most 47.07"):
        load(tmp_path, text)
    load(tmp_path, text.replace("queue: lossy", "queue: lossy\nmtu_bytes: 9000"))


@pytest.mark.parametrize("name", ["configuration-a", "configuration-b", "configuration-b-jumbo"])
def test_salamys_links_carry_what_their_packets_headers_leave(name: str) -> None:
    topology = load_topology(name)
    for link in topology.links:
        assert link.payload_rate_gbps == pytest.approx(
            link.line_rate_gbps * payload_share(topology.mtu_bytes), abs=0.05
        )


def test_a_topology_without_a_buffer_is_stored_as_before(tmp_path: Path) -> None:
    load(tmp_path, TREE)
    tree = load_topology("tree", tmp_path)
    assert "buffer" not in tree.model_dump(mode="json")
    load(tmp_path, TREE.replace("queue: lossy", "queue: lossless\nbuffer: {bytes: 16000000, alpha: 0.125}"))
    shared = load_topology("tree", tmp_path)
    assert shared.buffer is not None
    assert (shared.buffer.bytes, shared.buffer.alpha, shared.buffer.headroom_bytes) == (16_000_000, 0.125, None)
    assert Topology.model_validate(shared.model_dump(mode="json")) == shared
    assert shared.with_rates(100, None).buffer == shared.buffer


def test_two_hosts_in_a_row_are_no_network(tmp_path: Path) -> None:
    text = TREE.replace("[a, x]", "[a, b]").replace("  - {name: B, ends: [b, x]}\n", "")
    with pytest.raises(SpecError, match="a link between two hosts"):
        load(tmp_path, text)


def test_the_bottleneck_is_marked_or_the_narrowest_link(tmp_path: Path) -> None:
    assert load_topology("dumbbell-2x2").bottleneck.name == "L1"
    assert load_topology("configuration-b").bottleneck.name == "s0"
    load(tmp_path, TREE.replace(", bottleneck: true", ""))
    assert load_topology("tree", tmp_path).bottleneck.name == "C"


def test_feedback_takes_the_way_from_the_bottleneck_and_back(tmp_path: Path) -> None:
    load(tmp_path, TREE.replace("[b, x]", "[b, x], delay_us: 5"))
    tree = load_topology("tree", tmp_path)
    sending_us = 1448 * 8 / 43e3 + 1448 * 8 / 20e3 + 98 * 8 / 50e3 * 2 + 98 * 8 / 25e3
    least = sending_us + 5 * 0.6 + 5
    assert tree.feedback_delay("a", "c") == pytest.approx((least, least + 2))
    # b's own link has 5 us, and is on the way back alone.
    assert tree.feedback_delay("b", "c").least_us == pytest.approx(least + 4.9)
    assert tree.feedback_delay("b", "a").mean_us == pytest.approx(
        1448 * 8 / 43e3 + 98 * 8 / 50e3 * 2 + 0.6 + 0.6 + 5.5 + 6
    )


def test_delays_that_are_given_replace_the_topologys_and_defaults_are_not_stored(tmp_path: Path) -> None:
    load(tmp_path, TREE + "delays: {switch_us: 2.0, cnp_to_cut_us: 7.0}\n")
    tree = load_topology("tree", tmp_path)
    assert tree.model_dump()["delays"]["switch_us"] == 2
    changed = tree.with_delays(Delays(cnp_to_cut_us=0)).delays
    assert (changed.switch_us, changed.cnp_to_cut_us, changed.link_us) == (2, 0, 0.1)
    plain = load_topology("dumbbell-2x2").model_dump()
    assert "delays" not in plain and "delay_us" not in plain["links"][0]
