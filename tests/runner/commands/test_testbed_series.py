# SPDX-License-Identifier: Apache-2.0
"""`roundabout run` on several testbeds: which ones, in which order, and what stays if one fails."""

import json
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from roundabout.cli.main import main
from roundabout.cli.runs import resume, run as command
from roundabout.core.errors import RoundaboutError, UsageError
from roundabout.models.packets import UnsupportedError
from roundabout.runner import run as runner
from roundabout.runner.machine import machine_lease
from roundabout.runner.run import Runner
from roundabout.runner.testbed import TestbedProvider as Provider
from roundabout.spec import Experiment, load_experiment
from roundabout.store import Run
from roundabout.terminal import execution, series_execution
from roundabout.terminal.testbed_series import TestbedSeries as Series, choose_series
from roundabout.terminal.validity import UnmeasuredError
from roundabout.testbeds import find_provider
from roundabout.testbeds.fluid.provider import FluidProvider

pytestmark = pytest.mark.unit

DILATED = {"dilation": "3", "transport_dilation": "16"}
"""Of `unfair-vgg19` in a lab."""
INVENTORY = Path(__file__).parents[3] / "inventory.example"


@pytest.fixture(scope="module")
def vgg19() -> Experiment:
    return load_experiment("unfair-vgg19")


def where(series: Series) -> list[dict[str, str]]:
    return [dict(each.where) for each in series.providers]


def test_the_default_is_a_prediction_and_then_the_lab(vgg19: Experiment) -> None:
    series = choose_series(vgg19, None, is_root=True, jobs=2)
    assert where(series) == [{"testbed": "packets", "jobs": "2"}, {"testbed": "lab", **DILATED}]
    assert series.notes == ()


def test_the_lab_of_the_default_has_the_experiments_own_dilation() -> None:
    series = choose_series(load_experiment("mltcp-vgg19", length="quick"), None, is_root=True)
    assert where(series)[-1] == {"testbed": "lab", "dilation": "4"}


def test_without_root_the_prediction_runs_alone(vgg19: Experiment) -> None:
    series = choose_series(vgg19, None, is_root=False)
    assert (where(series), series.lacks_root) == ([{"testbed": "packets"}], True)


@pytest.fixture
def whole_traces() -> Experiment:
    """`cluster-slices` with whole traces, which packets refuse."""
    experiment = load_experiment("cluster-slices")
    whole = [cell.spec.cluster.model_copy(update={"slice": None}) for cell in experiment.cells if cell.spec.cluster]
    cells = zip(experiment.cells, whole, strict=True)
    changed = tuple(
        cell.model_copy(update={"spec": cell.spec.model_copy(update={"cluster": cluster})}) for cell, cluster in cells
    )
    return experiment.model_copy(update={"cells": changed})


def test_an_experiment_that_packets_refuse_runs_in_the_lab_alone(whole_traces: Experiment) -> None:
    series = choose_series(whole_traces, None, is_root=True)
    assert [each["testbed"] for each in where(series)] == ["lab"]
    (note,) = series.notes
    assert note.startswith("packets left out: cluster: found a whole trace")
    # Without root the lab's own error says what is missing.
    assert [each["testbed"] for each in where(choose_series(whole_traces, None, is_root=False))] == ["lab"]


def test_an_experiment_that_the_lab_refuses_is_computed_alone(vgg19: Experiment) -> None:
    red = vgg19.model_copy(update={"cells": tuple(with_red(cell) for cell in vgg19.cells)})
    series = choose_series(red, None, is_root=True)
    assert [each["testbed"] for each in where(series)] == ["packets"]
    assert series.notes[0].startswith("lab left out: queue: found red")
    assert not series.lacks_root


def with_red(cell: Any) -> Any:
    return cell.model_copy(update={"spec": cell.spec.model_copy(update={"queue": "red"})})


def test_a_prediction_that_takes_longer_than_the_lab_is_left_out(
    vgg19: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = type(find_provider({"testbed": "packets"}))
    monkeypatch.setattr(kind, "computing_s", lambda *_: 3600.0)
    monkeypatch.setattr(kind, "processors", 1)
    series = choose_series(vgg19, None, is_root=True)
    assert where(series) == [{"testbed": "lab", **DILATED}]
    assert series.notes == (
        "packets left out: it would take about 30 h 0 min, and lab 5 min 30 s; --testbed packets,lab runs both",
    )
    assert len(choose_series(vgg19, "packets,lab", is_root=True).providers) == 2
    assert choose_series(vgg19, None, is_root=False).lacks_root


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"scale": 50.0}, {"testbed": "lab", "scale": "50", **DILATED}),
        ({"dilation": 4.0}, {"testbed": "lab", "dilation": "4"}),
        ({"executor": "slurm"}, {"testbed": "lab", **DILATED}),
        ({"inventory": INVENTORY}, {"testbed": "rack", "inventory": str(INVENTORY)}),
        ({"testbed": "fluid"}, {"testbed": "fluid"}),
    ],
)
def test_an_option_of_one_testbed_means_that_one_alone(
    vgg19: Experiment, options: dict[str, Any], found: dict[str, str]
) -> None:
    series = choose_series(vgg19, options.pop("testbed", None), is_root=True, **options)
    assert where(series) == [found]


def test_each_testbed_of_a_list_gets_the_options_that_it_has(vgg19: Experiment) -> None:
    series = choose_series(vgg19, "fluid, packets,lab", is_root=True, jobs=1, dilation=4.0)
    assert where(series) == [
        {"testbed": "fluid"},
        {"testbed": "packets", "jobs": "1"},
        {"testbed": "lab", "dilation": "4"},
    ]


@pytest.mark.parametrize(
    ("testbed", "options", "said"),
    [
        ("packets,packets", {}, "found 'packets,packets', expected names of testbeds, each once"),
        ("packets,lap", {}, "found testbed 'lap', expected one of"),
        ("packets,", {}, "found 'packets,', expected names"),
        ("fluid,lab", {"jobs": 2}, "found --jobs, expected none: none of fluid, lab has this option"),
        ("packets,rack", {}, "found no inventory"),
        ("fluid,lab", {"is_root": False}, "found lab, which needs root"),
    ],
)
def test_a_faulty_list_is_a_usage_error_before_anything_begins(
    vgg19: Experiment, testbed: str, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError) as raised:
        choose_series(vgg19, testbed, **{"is_root": True, **options})
    assert said in raised.value.message


def test_a_list_with_a_testbed_that_cannot_run_it_is_refused(whole_traces: Experiment) -> None:
    with pytest.raises(UnsupportedError, match="found a whole trace"):
        choose_series(whole_traces, "fluid,packets", is_root=True)


@pytest.fixture
def two_testbeds(work: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`run` on the flow-level model, then on the fake testbed."""
    computed = FluidProvider()

    def choose(*_: Any, **__: Any) -> Series:
        return Series((computed, work.provider))

    def new_runner(provider: Provider, *words: Any, **options: Any) -> Runner:
        return work.runner if provider is work.provider else Runner(provider, *words, **options)

    monkeypatch.setattr(command, "choose_series", choose)
    monkeypatch.setattr(execution, "Runner", new_runner)
    monkeypatch.setattr(execution, "undo_when_ended", lambda: None)
    monkeypatch.setattr(series_execution, "STATE", work.state)
    monkeypatch.setattr("analysis.reports.report.write_report", lambda run: run.path / "report.html")
    monkeypatch.setattr(runner, "MAX_REPEATS", 0)
    return work


def call(work: Any, tiny: Callable[..., str], *words: str) -> int:
    return main(["run", str(work.write(tiny())), "--runs", str(work.runs), *words])


def runs(work: Any) -> dict[str, Run]:
    return {run.manifest["testbed"]["kind"]: run for run in Run.all(work.runs)}


def test_each_testbed_has_a_run_and_both_are_on_one_page(two_testbeds, tiny, capsys):
    assert call(two_testbeds, tiny) == 0
    said = capsys.readouterr().out
    assert set(runs(two_testbeds)) == {"fluid", "fake"}
    assert said.index("1 of 2: fluid") < said.index("2 of 2: fake") < said.index("Median iteration time in ms")
    assert said.splitlines()[-1] == f"page    {two_testbeds.runs / 'tiny/testbeds.html'}"
    page = (two_testbeds.runs / "tiny/testbeds.html").read_text()
    assert all(run.id in page for run in runs(two_testbeds).values())


def test_json_has_the_summary_of_the_last_testbed(two_testbeds, tiny, capsys):
    assert call(two_testbeds, tiny, "--json") == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["run"] == runs(two_testbeds)["fake"].id
    assert "testbeds.html" in said.err


def test_a_testbed_that_is_refused_leaves_the_runs_before_it(two_testbeds, tiny, capsys, monkeypatch):
    def refuse(*_: Any) -> None:
        raise RoundaboutError("this kernel has no BTF", "boot another")

    monkeypatch.setattr(two_testbeds.provider, "create_hosts", refuse)
    assert call(two_testbeds, tiny) == 1
    said = capsys.readouterr()
    (complete,) = runs(two_testbeds).values()
    assert complete.manifest["testbed"]["kind"] == "fluid"
    assert said.out.splitlines()[-1] == f"complete  {complete.path / 'report.html'}"
    assert said.err.splitlines() == ["error: this kernel has no BTF", "  boot another"]
    assert not (two_testbeds.runs / "tiny/testbeds.html").exists()


def test_nothing_is_computed_beside_a_run_that_measures(two_testbeds, tiny, capsys, monkeypatch):
    monkeypatch.setattr(machine_lease, "QUEUE_S", 0.1)
    with machine_lease.hold("machine", "other 20261121T093012Z-7f3a", two_testbeds.state):
        assert call(two_testbeds, tiny) == 1
    said = capsys.readouterr().err
    assert "for the machine, which is leased to other 20261121T093012Z-7f3a (pid" in said
    assert "error: the machine is leased to other 20261121T093012Z-7f3a (pid" in said
    assert runs(two_testbeds) == {}


def test_an_interrupted_run_leaves_those_before_it_and_resumes_up_to_the_page(two_testbeds, tiny, capsys, monkeypatch):
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(two_testbeds.notes, "iteration", interrupt)
        assert call(two_testbeds, tiny) == 130
    found = runs(two_testbeds)
    assert len(found["fluid"].committed()) == len(found["fluid"].manifest["plan"])
    assert not found["fake"].committed()
    monkeypatch.setattr(resume, "find_provider", lambda _where: two_testbeds.provider)
    assert main(["resume", found["fake"].id, "--runs", str(two_testbeds.runs)]) == 0
    assert found["fake"].committed()
    page = two_testbeds.runs / "tiny/testbeds.html"
    assert capsys.readouterr().out.splitlines()[-1] == f"page    {page}"
    assert all(run.id in page.read_text() for run in found.values())


def test_a_run_that_is_alone_resumes_without_a_comparison(two_testbeds, tiny, capsys, monkeypatch):
    assert call(two_testbeds, tiny) == 0
    shutil.rmtree(runs(two_testbeds)["fluid"].path)
    page = two_testbeds.runs / "tiny/testbeds.html"
    page.unlink()
    monkeypatch.setattr(resume, "find_provider", lambda _where: two_testbeds.provider)
    capsys.readouterr()
    assert main(["resume", "last", "--runs", str(two_testbeds.runs)]) == 0
    assert "page " not in capsys.readouterr().out
    assert not page.exists()


def test_a_prediction_without_a_valid_trial_does_not_keep_from_measuring(two_testbeds, tiny, capsys, monkeypatch):
    checks = iter([UnmeasuredError("none of 1 trials is valid"), None])

    def check(_run: Run) -> None:
        if error := next(checks):
            raise error

    monkeypatch.setattr(execution, "check_measured", check)
    assert call(two_testbeds, tiny) == 0
    assert "warning: none of 1 trials is valid" in capsys.readouterr().err
    assert set(runs(two_testbeds)) == {"fluid", "fake"}


def test_without_root_the_last_line_says_how_to_add_the_lab(two_testbeds, tiny, capsys, monkeypatch):
    monkeypatch.setenv("PATH", "")  # where `roundabout` is no command, the program is called as it was
    monkeypatch.setattr(sys, "argv", [".venv/bin/roundabout"])
    alone = Series((FluidProvider(),), lacks_root=True)
    monkeypatch.setattr(command, "choose_series", lambda *_, **__: alone)
    assert call(two_testbeds, tiny, "--only", "fair", "--set", "about='two jobs'") == 0
    last = capsys.readouterr().out.splitlines()[-1]
    path, runs = two_testbeds.folder / "tiny.yaml", two_testbeds.runs
    words = last.removeprefix("the lab needs root; to add it: sudo ").split(" && ")
    assert [shlex.split(each) for each in words] == [
        [
            ".venv/bin/roundabout",
            "run",
            str(path),
            "--set",
            "about='two jobs'",
            "--only",
            "fair",
            "--runs",
            str(runs),
            "--testbed",
            "lab",
        ],
        [".venv/bin/roundabout", "compare", "tiny", "--testbeds", "--runs", str(runs)],
    ]
