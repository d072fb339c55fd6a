# SPDX-License-Identifier: Apache-2.0
"""The study and the quantities of links' events, on a run that the flow-level model computes."""

from pathlib import Path
from typing import Any

import pytest

from analysis.quantities import CachedReading, Case, QuantityRequest, find_quantity
from analysis.reading.cells import cells_of
from analysis.reading.recoveries import job_times
from analysis.studies import study_of
from analysis.studies.link_events import figures, tables
from analysis.studies.link_events.study import study
from roundabout import build_experiment
from roundabout.spec import StudyChoice
from roundabout.store import Run
from roundabout.testbeds.fluid.provider import FluidProvider
from tests.computed_runs import runner_on
from tests.two_phases import two_phases

pytestmark = pytest.mark.unit

LINK = "s0"
FILE: dict[str, Any] = {
    "name": "events",
    "about": "a host's link fails for 110 ms",
    "topology": "leaf-spine-2x2",
    # An iteration takes 110 ms, of which the link is busy for 100 ms.
    "profiles": {"p": two_phases(10, 537_500_000, 100)},
    "jobs": {"j1": {"profile": "p", "workers": ["s0", "s2"]}, "j2": {"profile": "p", "workers": ["s1", "s3"]}},
    "transport": {"name": "dcqcn"},
    "routing": {"name": "ecmp", "seed": 1},
    "iterations": 10,
    "factors": {
        "variant": {
            "quiet": {},
            "fails": {
                "events": [
                    {"at_ms": 270, "link": LINK, "what": "fails"},
                    {"at_ms": 380, "link": LINK, "what": "recovers"},
                ]
            },
        }
    },
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder: Path = tmp_path_factory.mktemp("runs")
    return runner_on(FluidProvider()).start(build_experiment(FILE), "events", folder)


def cases(run: Run, name: str) -> dict[str, Case]:
    found = find_quantity(name).measure(QuantityRequest(CachedReading(run)))
    return {case.name: case for case in found if isinstance(case, Case)}


def test_a_job_recovers_where_its_first_usual_iteration_begins(run: Run) -> None:
    """The third iteration begins at 220 ms, and ends at 440 ms in place of 330."""
    found = cases(run, "recovery time")
    assert {name: case.value for name, case in found.items()} == pytest.approx(
        {
            f"fails, j1, {LINK} fails at 270 ms": 170,
            f"fails, j1, {LINK} recovers at 380 ms": 60,
            f"fails, j2, {LINK} fails at 270 ms": 0,
            f"fails, j2, {LINK} recovers at 380 ms": 0,
        }
    )
    assert {case.properties["event"] for case in found.values()} == {
        f"{LINK} fails at 270 ms",
        f"{LINK} recovers at 380 ms",
    }


def test_the_iterations_that_a_job_loses_are_those_of_the_failure(run: Run) -> None:
    found = cases(run, "lost iterations")
    assert [case.value for case in found.values()] == pytest.approx([1, 0, 0, 0])


def test_the_study_shows_each_recovery_and_each_event(run: Run) -> None:
    results = study(run, StudyChoice())
    assert [(each.job, each.recovery_ms) for each in results.recoveries] == [
        ("j1", pytest.approx(170)),
        ("j1", pytest.approx(60)),
        ("j2", 0),
        ("j2", 0),
    ]
    (section,) = tables.recovery_table(results).sections
    assert len(section.rows) == 4
    drawn = figures.draw_iterations(cells_of(run), job_times(run))
    assert drawn
    (panel,) = drawn.axes
    lines = [line.get_xdata() for line in panel.lines]
    assert [270, 270] in [list(each) for each in lines]
    assert [380, 380] in [list(each) for each in lines]


def test_experiments_with_events_get_the_study() -> None:
    assert study_of(build_experiment(FILE)).kind == "link-events"
