# SPDX-License-Identifier: Apache-2.0
"""Streams that take the least loaded spines of a leaf-spine, and move as links fill: SGLB."""

import pytest

from roundabout.models.fluid import Engine, ResidualCapacity
from roundabout.models.fluid.jobs import Barrier, FluidJob, SendPhase, Stream

pytestmark = pytest.mark.unit

UP = [[(leaf, spine) for spine in ("x", "y")] for leaf in ("a", "b")]
EDGES = [edge for leaf in UP for edge in leaf]
SAME = (("a", "x"), ("x", "b"))
"""The path that all streams are given, and that the engine is to replace."""


def ends_ms(sizes, choices, interval_ms):
    """Return when jobs end that each send a stream of these bytes over one of two spines, at up to 1 byte/ms."""
    engine = Engine(ResidualCapacity.constant({way: 1.0 for edge in EDGES for way in (edge, edge[::-1])}))
    engine.balance(UP, choices, interval_ms)
    for place, size in enumerate(sizes):
        phase = SendPhase((Stream(0, 0, SAME, size),), size, (Barrier((0,), (0,)),))
        engine.add(str(place), FluidJob((phase,), 1, iterations=1))
    engine.run_to_end()
    return [engine.iterations(str(place))[0, 0, 2] for place in range(len(sizes))]


def test_streams_start_on_the_spine_with_the_fewest_streams():
    assert ends_ms([100, 100], 1, 1e6) == pytest.approx([100, 100])


def test_a_stream_moves_at_the_next_interval_after_another_spine_is_free():
    """Two streams share a spine until 105 ms, the next multiple of 15 ms after the other one ends at 100 ms."""
    assert ends_ms([100, 100, 100], 1, 1e6) == pytest.approx([200, 100, 200])
    assert ends_ms([100, 100, 100], 1, 15) == pytest.approx([152.5, 100, 152.5])


def test_a_hash_chooses_among_as_many_spines_as_are_eligible():
    """Streams that took turns, as they do if nothing mixes their numbers, would end together, six on each spine."""
    found = ends_ms([100] * 12, 2, 1e6)
    assert found == ends_ms([100] * 12, 2, 1e6)
    assert min(found) < 600 < max(found)
