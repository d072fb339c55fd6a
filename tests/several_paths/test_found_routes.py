# SPDX-License-Identifier: Apache-2.0
"""Runs on fake hosts whose switches choose routes by themselves: what is stored, and what is said."""

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from rich.live import Live

from analysis.reading.fidelity import describe_found_routes, fidelity_of
from roundabout.runner.progress_events import Follower
from roundabout.runner.trial.routes.route_readback import read_routes
from roundabout.terminal.run_progress import PlainView, TerminalView
from tests.fakes.testbed import FakeSite
from tests.fakes.workplace import Workplace, experiment
from tests.several_paths.trials import build_dumbbell, build_leaf_spine, planned

pytestmark = pytest.mark.unit

SWITCH_OF = {"10.9.0.1": "leaf0", "10.9.0.2": "spine0", "10.9.0.3": "leaf1"}
FROM_LEAF0 = ["leaf0", "spine0", "leaf1"]
LEAF_SPINE = experiment(repetitions=2).replace("dumbbell-2x2", "leaf-spine-2x2")


def test_a_run_stores_found_routes_and_reports_differences_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeSite, "switch_addresses", SWITCH_OF)
    work = Workplace(tmp_path)
    run = work.start(LEAF_SPINE)
    assert len(run.trials()) == 2
    for trial in run.trials():
        found = {(route["user"], route["sender"]): route for route in trial["found_routes"]}
        assert set(found) == {("j1", "s0"), ("j1", "s2"), ("j2", "s1"), ("j2", "s3")}
        assert all(route["switches"] == FROM_LEAF0 for route in found.values())
        assert found["j1", "s2"]["as_planned"] is False
        planned = {(route["user"], route["sender"]): route["cables"] for route in trial["routes"]}
        for flow in (("j1", "s0"), ("j2", "s1")):
            assert (found[flow]["cables"] == planned[flow]) is found[flow]["as_planned"]
    (notice,) = work.notes.notices
    assert "of 4 flows take other switches than planned, as j" in notice
    (limit,) = (line for line in fidelity_of(run).cannot if line.startswith("routes: of 8 flows, summed over trials, "))
    assert "limits and scores on this page are of the planned routes" in limit


def test_a_page_says_of_routes_only_what_differs() -> None:
    assert describe_found_routes([{}, {"found_routes": [{"as_planned": True}]}]) == []
    (line,) = describe_found_routes([{"found_routes": [{"as_planned": each} for each in (True, False, None, None)]}])
    assert line.startswith("routes: of 4 flows, summed over trials, 1 took other switches than planned, and of 2 it is")


@pytest.mark.parametrize("addresses", [None, SWITCH_OF])
def test_no_route_is_probed_where_none_is_to_be_found_out(addresses: dict[str, str] | None) -> None:
    """The testbed has set the routes itself, or the topology is a tree."""
    spec = build_leaf_spine({"name": "ecmp"}, "dctcp") if addresses is None else build_dumbbell("dctcp")
    session: Any = SimpleNamespace(site=SimpleNamespace(switch_addresses=addresses))
    assert read_routes(session, planned(spec)) == []


def test_a_log_and_a_terminal_show_a_notice() -> None:
    out = io.StringIO()
    console = Console(file=out, width=80, force_terminal=True)
    with Live(console=console, auto_refresh=False, transient=True) as live:
        Follower(TerminalView(console, live), PlainView(console)).notice("flows take other switches")
    assert out.getvalue().count("flows take other switches") == 2
