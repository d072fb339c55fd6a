# SPDX-License-Identifier: Apache-2.0
"""Planted trials as a model of a testbed plays them."""

import numpy as np

from analysis.attribution.counterfactuals import Computing
from analysis.attribution.decomposition import MeasuredTrial, Models
from roundabout.models.packets.jobs import draw_stretches
from roundabout.plan import PlannedTrial
from roundabout.testbeds import find_provider
from tests.analysis.attribution.planted_causes import Planted


def play(planted: Planted, seed: int, testbed: str) -> tuple[MeasuredTrial, Models]:
    """Return the trial as the model of a testbed measures it, and the models that explain it."""
    spec = planted.spec
    trial = PlannedTrial("planted", "", {}, 1, None, spec, seed, (), 0.0)
    share, replay = (find_provider({"testbed": name}).open_replay(trial, lambda: False) for name in ("fluid", testbed))
    drawn = {
        name: np.array(draw_stretches(spec, name, seed)) if testbed == "packets" else np.ones(1) for name in spec.jobs
    }
    slowest, mean = (
        {name: tuple((each * (factor if name == "j1" else 1.0)).tolist()) for name, each in drawn.items()}
        for factor in (planted.slowed, planted.mean_slowed)
    )
    times = {name: float(np.mean(each)) for name, each in replay(spec, slowest).items()}
    return MeasuredTrial(spec, seed, times, Computing(slowest, mean)), Models(replay, share)
