# SPDX-License-Identifier: Apache-2.0
"""The packet-level model beside outputs of uet-htsim, HPCC's ns-3 and ns-3 (benchmarks/packet_scenes.py).

Tolerances are what the figures in docs/results/packet-simulators.md need, and not more than twice as much.
"""

from typing import Any

import pytest

from benchmarks import packet_scenes as scenes

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(("size", "theirs_us"), [(408_600, 46.8907), (2_000_000, 176.2)])
def test_a_flow_over_six_links_takes_as_long_as_in_htsim(size: int, theirs_us: float) -> None:
    spec = scenes.build(scenes.matrix(16, [(0, 13)], size), scenes.tree(4), scenes.PFC)
    assert scenes.times_us(spec) == [pytest.approx(theirs_us, rel=0.015)]


@pytest.mark.parametrize("changes", [scenes.PFC, scenes.DCTCP])
def test_an_incast_ends_when_the_link_has_carried_all(changes: dict[str, Any]) -> None:
    flows = scenes.matrix(16, [(host, 15) for host in range(15)])
    spec = scenes.build(flows, scenes.tree(4), changes)
    assert max(scenes.times_us(spec)) == pytest.approx(2478.53, rel=0.01)


def test_a_permutation_ends_with_the_busiest_link() -> None:
    pairs = scenes.draw_permutation(16, 4)
    assert sorted(other for _, other in pairs) == list(range(16))
    spec = scenes.build(scenes.matrix(16, pairs), scenes.tree(4), scenes.DCTCP, 4)
    assert scenes.most_flows(spec) == 3
    assert max(scenes.times_us(spec)) == pytest.approx(527.755, rel=0.02)


def test_a_permutation_of_nscc_ends_as_soon_as_in_htsim() -> None:
    for row in scenes.single_paths(range(1, 4), scenes.SINGLE_PATHS[:1]):
        assert sum(row.ours) / 3 == pytest.approx(row.theirs, rel=0.05)


@pytest.mark.parametrize(("routing", "theirs_us"), [("bitmap", 203.826), ("reps", 195.124)])
def test_senders_that_avoid_marked_paths_end_as_soon_as_in_htsim(routing: str, theirs_us: float) -> None:
    """Theirs acknowledges each packet, too (perm_128n_128c_2MB.cm, -paths 128 -sack_threshold 4000)."""
    flows = scenes.matrix(128, scenes.draw_permutation(128, 1))
    spec = scenes.build(flows, scenes.tree(8), {**scenes.NSCC, "routing": {"name": routing}})
    assert max(scenes.times_us(spec)) == pytest.approx(theirs_us, rel=0.025)


def test_links_that_are_slow_in_one_direction_delay_a_permutation_as_in_htsim() -> None:
    [row] = scenes.one_way(range(1, 4), scenes.ONE_WAY[:1])
    assert sum(row.ours) / 3 == pytest.approx(row.theirs, rel=0.05)


def test_dcqcn_shares_a_port_as_in_hpccs_simulator() -> None:
    found = list(scenes.hpcc(range(1, 2)))
    assert [row.ours for row in found] == [[pytest.approx(row.theirs, rel=0.05)] for row in found]


def test_dctcp_is_within_the_bounds_of_ns3() -> None:
    bounds = list(scenes.dctcp(range(1)))
    assert {bound.rtt_ms for bound in bounds} == {10, 80}
    assert [str(bound) for bound in bounds if not str(bound).endswith(": holds")] == []


def test_bounds_alone_are_printed_without_a_factor(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bound = scenes.BOUNDS[0]._replace(found=(48.5,))
    monkeypatch.setitem(scenes.SCENES, "dctcp", lambda _: iter([bound]))
    monkeypatch.setattr("sys.argv", [scenes.__file__, "--scenes", "dctcp"])
    scenes.main()
    assert capsys.readouterr().out == f"{bound}\n"


def test_web_search_flows_load_the_links_as_requested() -> None:
    flows = scenes.web_search(0.3, 1e-3)
    assert sum(size for _, _, size, _ in flows) * 8 / 1e-3 / 320 == pytest.approx(30e9, rel=0.05)
    assert all(one != other for one, other, _, _ in flows)
