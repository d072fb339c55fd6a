# SPDX-License-Identifier: Apache-2.0
"""Every figure draws, from sweeps that are made up; DEGRADATION_FIGURES=folder keeps them to be looked at."""

import os
from pathlib import Path

import numpy as np
import pytest

from analysis.papers.salamy import FITS
from analysis.render.page import figure_html
from analysis.statistics.degradation.congestion_point import congestion_point
from analysis.statistics.degradation.fit import fit_model
from analysis.statistics.degradation.model import iteration_time_s
from analysis.statistics.degradation.model_choice import Choice
from analysis.statistics.degradation.sweep import Level, Sweep
from analysis.studies.load_sweep.degradation_figures import (
    CurveSeries,
    draw_congestion,
    draw_degradation,
    draw_distributions,
    draw_fits,
)
from analysis.studies.load_sweep.study import EquationResult, make_congestion_result, make_fit_result

pytestmark = pytest.mark.unit

LOADS_GBPS = np.array([0, 2, 4, 6, 8, 10, 12, 14, 15, 16, 17, 18, 19, 20.0])
CURVES = {"BERT-large": (0.618, 9.95, 1.0), "VGG-16": (0.254, 10.75, 1.0), "ResNet-50": (0.140, 22.793, 2.0)}


def made_up(a_s, b, n, *, tail=1.0):
    """Five repetitions of 60 iterations a level on one of Salamy's curves, more scattered as the load grows."""
    generator = np.random.default_rng(4)
    levels = []
    for load, time_s in zip(LOADS_GBPS, iteration_time_s(LOADS_GBPS, a_s, b, n, 25.0), strict=True):
        spread = 0.01 + tail * 0.15 * (load / 20) ** 3
        repetitions = time_s * np.exp(0.3 * spread * generator.standard_normal((5, 1)))
        levels.append(Level(float(load), tuple(repetitions * generator.gamma(1 / spread**2, spread**2, (5, 60)))))
    return Sweep(tuple(levels), 25.0)


def series(sweep, fitted=None, printed=None):
    """As results have it."""
    return CurveSeries(
        sweep.loads_gbps,
        sweep.means_s,
        np.array([level.times_s.max() for level in sweep.levels]),
        sweep.link_gbps,
        fitted and make_fit_result(Choice(fitted, {})),
        printed
        and EquationResult(source=printed.source, a_s=printed.a_s, b=printed.b, n=printed.n, capacity_gbps=25.0),
    )


@pytest.fixture
def keep():
    folder = os.environ.get("DEGRADATION_FIGURES")

    def keep_(figure, name):
        figure.suptitle("made-up data", color="#d0342c", fontsize=8)
        target = Path(folder, f"{name}.png") if folder else os.devnull
        figure.savefig(target, dpi=110, format="png")

    return keep_


def test_degradation_with_fits_and_tails(keep):
    swept = {name: made_up(*curve) for name, curve in CURVES.items()}
    shown = {
        name: series(sweep, fit_model(sweep, n=CURVES[name][2], capacity_gbps=25.0)) for name, sweep in swept.items()
    }
    result = draw_degradation(shown)
    keep(result, "degradation")
    assert [panel.get_yscale() for panel in result.axes] == ["log", "log"]


def test_fits_beside_those_of_salamy(keep):
    panels = {}
    for traffic in ("consistent", "burst"):
        printed = {each.model: each for each in FITS if (each.traffic, each.transport) == (traffic, "TCP")}
        sweeps = {name: made_up(1.2 * each.a_s, 0.9 * each.b, each.n) for name, each in printed.items()}
        panels[traffic] = {
            name: series(sweep, fit_model(sweep, n=None, capacity_gbps=25.0), printed[name])
            for name, sweep in sweeps.items()
        }
    result = draw_fits(panels)
    keep(result, "fits")
    assert "Salamy" in result.axes[0].get_legend().get_texts()[1].get_text()


@pytest.mark.parametrize("number", [2, 14])
def test_panels_of_fits_keep_their_height_above_long_keys(number):
    printed = FITS[0]
    sweep = made_up(printed.a_s, printed.b, printed.n)
    result = draw_fits({"ResNet-50": {f"traffic {each}": series(sweep, None, printed) for each in range(number)}})
    figure_html(result, "caption", "alt")  # lays the figure out
    assert result.axes[0].get_position().height * result.get_figheight() > 2.5


def test_the_construction_of_congestion_points(keep):
    sweeps = {name: made_up(*CURVES[name]) for name in ("VGG-16", "ResNet-50")}
    result = draw_congestion(
        {name: (series(sweep), make_congestion_result(congestion_point(sweep), 700)) for name, sweep in sweeps.items()}
    )
    keep(result, "congestion")
    assert len(result.axes) == 1


def test_distributions_at_two_loads(keep):
    sweeps = {name: {"consistent": made_up(*curve), "burst": made_up(*curve, tail=3)} for name, curve in CURVES.items()}
    panels = {
        title: {name: {kind: sweep.levels[at].times_s for kind, sweep in each.items()} for name, each in sweeps.items()}
        for title, at in (("30 % load", 4), ("80 % load", -1))
    }
    result = draw_distributions(panels)
    keep(result, "distributions")
    assert result.axes[1].get_xscale() == "log"
