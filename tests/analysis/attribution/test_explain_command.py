# SPDX-License-Identifier: Apache-2.0
"""`roundabout explain`: on stored runs, in tables, as JSON, as a picture, and its refusals."""

import io
import json
import shutil
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from analysis.attribution import attribution_tables
from analysis.attribution.attribution import Attribution, DelayPart, JobDelay, choose_trials
from analysis.expectations.results import CellFigure
from analysis.render import screen
from analysis.reports.delays import delays_html, store_delays, stored_delays
from roundabout import api
from roundabout.cli.main import main
from roundabout.runner.testbed import Outcome
from roundabout.spec import Transport, load_experiment
from roundabout.spec.profile import ProfileScaling
from roundabout.store import Run
from roundabout.terminal.replays import choose_models
from roundabout.terminal.screen import Screen
from roundabout.testbeds.fluid.provider import FluidProvider, FluidTestbed
from tests.analysis.attribution.planted_causes import cross_traffic, neighbor
from tests.analysis.computed_run import TINY, compute
from tests.computed_runs import runner_on

pytestmark = pytest.mark.unit

SLOWED = 1.2


class SlowWorkerTestbed(FluidTestbed):
    """A testbed on which each job's second worker computes SLOWED times as long, and the first one waits for it."""

    def execute(self, trial, attempt, identity):
        slow = {name: job.profile.scale_by(ProfileScaling(compute=SLOWED)) for name, job in trial.spec.jobs.items()}
        jobs = {name: job.model_copy(update={"profile": slow[name]}) for name, job in trial.spec.jobs.items()}
        spec = trial.spec.model_copy(update={"jobs": jobs})
        outcome = super().execute(replace(trial, spec=spec), attempt, identity)
        table = outcome.tables["iterations"]
        is_fast = pc.equal(table["rank"], 0)
        shorter = pc.if_else(is_fast, pc.divide(table["compute_ms"], SLOWED), table["compute_ms"])
        place = table.schema.get_field_index("compute_ms")
        changed = table.set_column(place, table.schema.field(place), shorter.cast(pa.float64()))
        return Outcome({**outcome.tables, "iterations": changed}, outcome.invalid_reasons, outcome.record)


class SlowWorkerProvider(FluidProvider):
    """The provider of that testbed."""

    def open_testbed(self, _topology, context):
        return nullcontext(SlowWorkerTestbed(context))


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    return compute(tmp_path_factory.mktemp("explained"))


def explain(run: Run, *options: str) -> int:
    return main(["explain", str(run.path), *options])


def test_each_job_gets_a_sentence_and_its_parts(run, capsys):
    assert explain(run) == 0
    shown = capsys.readouterr().out
    assert "fair: j2 lost" in shown
    assert "to j1 on L1" in shown
    assert "alone: j1 lost 0.0 ms per iteration of 293.0 ms: nothing to explain" in " ".join(shown.split())


def test_json_has_parts_that_sum_to_the_delay(run, capsys):
    assert explain(run, "--json") == 0
    found = Attribution.model_validate(json.loads(capsys.readouterr().out))
    assert [(job.cell, job.job) for job in found.jobs] == [
        ("alone", "j1"),
        ("alone", "j2"),
        ("fair", "j1"),
        ("fair", "j2"),
    ]
    for job in found.jobs:
        assert sum(part.ms.value for part in job.parts) == pytest.approx(job.delay_ms.value, abs=1e-9)
        assert job.unexplained.ms.value == pytest.approx(0, abs=1e-5), "instants in tables are rounded to 1 ns"


def test_interval_is_shown_below_a_figure_unless_it_looks_the_same():
    parts = (
        DelayPart(cause="computing time", ms=CellFigure(value=-0.3, ci95=(-0.4, -0.2))),
        DelayPart(cause="unexplained", ms=CellFigure(value=0.0, ci95=(-1e-9, 1e-9))),
    )
    delay = {"iteration_ms": 99.7, "alone_ms": 100.0, "delay_ms": parts[0].ms, "parts": parts}
    job = JobDelay(cell="fair", levels={}, job="j1", repetitions=4, disturbed=False, **delay)
    found = Attribution(experiment="e", run="r", testbed="lab", model="packets", jobs=(job,))
    console = Screen(width=80, file=io.StringIO())
    console.print(screen.table_renderable(attribution_tables.table(found)))
    shown = console.file.getvalue()
    assert shown.count("-0.4 to -0.2") == 2
    assert "0.0 to" not in shown


@pytest.mark.parametrize(
    ("delay_ms", "unexplained_ms", "said"),
    [
        (60.0, -40.0, "j1 lost 60.0 ms per iteration: 100.0 to events of L1, -40.0 unexplained"),
        (60.0, 60.5, "j1 lost 60.0 ms per iteration, which the model does not explain: its delay is -0.5 ms"),
        (3.0, -97.0, "j1 lost 3.0 ms per iteration, which the model does not explain: its delay is 100.0 ms"),
        (3.0, 3.5, "j1 lost 3.0 ms per iteration, which the model does not explain: its delay is -0.5 ms"),
    ],
)
def test_nothing_is_named_by_a_model_that_misses_the_delay(delay_ms, unexplained_ms, said):
    parts = (
        DelayPart(cause="link events", link="L1", ms=CellFigure(value=delay_ms - unexplained_ms, ci95=None)),
        DelayPart(cause="unexplained", ms=CellFigure(value=unexplained_ms, ci95=None)),
    )
    times = {"iteration_ms": 200 + delay_ms, "alone_ms": 200.0, "delay_ms": CellFigure(value=delay_ms, ci95=None)}
    job = JobDelay(cell="fair", levels={}, job="j1", repetitions=1, disturbed=False, parts=parts, **times)
    assert attribution_tables.sentence(job) == said


def test_only_takes_one_variant(run):
    assert {job.cell for job in api.explain_delays(run, only=["fair"]).jobs} == {"fair"}


def test_picture_has_a_bar_for_each_job(run, tmp_path):
    picture = tmp_path / "delays.svg"
    assert explain(run, "--picture", str(picture)) == 0
    assert picture.read_text().startswith("<?xml")
    (axes,) = attribution_tables.figure(api.explain_delays(run)).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["alone j1", "alone j2", "fair j1", "fair j2"]


def test_report_shows_stored_delays_until_the_run_changes(run, tmp_path):
    run = Run(shutil.copytree(run.path, tmp_path / run.id))
    found = api.explain_delays(run, only=["fair"])
    assert delays_html(run) == ""
    store_delays(run, found)
    assert stored_delays(run) == found
    assert attribution_tables.sentences(found)[-1] in delays_html(run)
    run.write_manifest({**run.manifest, "warnings": ["another"]})
    assert delays_html(run) == ""


def test_slowest_worker_is_read_from_the_workers_of_a_stored_run(tmp_path):
    path = tmp_path / "slow.yaml"
    path.write_text(TINY)
    run = runner_on(SlowWorkerProvider()).start(load_experiment(path), str(path), tmp_path / "runs")
    (job,) = [each for each in api.explain_delays(run, only=["alone"]).jobs if each.job == "j2"]
    compute_ms = load_experiment(path).cells[0].spec.jobs["j2"].profile.compute_ms
    found = {part.cause: part.ms.value for part in job.parts}
    more_ms = (SLOWED - 1) * compute_ms
    assert found["slowest worker"] == pytest.approx(more_ms / 2, rel=1e-4), "the mean of two workers has half"
    assert found["computing time"] == pytest.approx(more_ms / 2, rel=1e-4)
    assert {part.cause for part in job.named} == {"slowest worker", "computing time"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--only", "unfair"], "--only: found unfair, allowed are levels of the run: alone, fair"),
        (["--model", "lab"], "--model: found lab, allowed are models: packets and fluid"),
        (["--model", "packet"], "--model: found packet, allowed are models: packets and fluid"),
        (["--picture", "delays.pdf"], "--picture: found 'delays.pdf'"),
    ],
)
def test_a_wrong_option_is_named_with_what_is_allowed(run, options, message, capsys):
    assert explain(run, *options) != 0
    assert message in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(("datapath", "recovery"), [("TCP", "selective_repeat"), ("RDMA", None)], ids=["TCP", "RDMA"])
def test_losses_are_repaired_as_by_the_datapath(run, datapath, recovery, tmp_path):
    copied = Run(shutil.copytree(run.path, tmp_path / run.id))
    for path in copied.path.glob("*/*/trial.json"):
        record = json.loads(path.read_text())
        del record["sha256"]
        jobs = record["spec"]["jobs"]
        for job in jobs.values():
            job["transport"] = {"name": "dcqcn", "stands_for": "TCP"}
        path.write_text(json.dumps(record | {"ways": dict.fromkeys(jobs, datapath)}))
    trials = choose_trials(copied).trials.values()
    assert trials
    for trial in trials:
        assert {job.transport.parameters.get("retransmission") for job in trial.spec.jobs.values()} == {recovery}


def test_a_measured_run_is_played_by_packets_or_else_flow_by_flow():
    run = SimpleNamespace(manifest={"testbed": {"fidelity": {"nature": "emulated"}}, "where": {"testbed": "lab"}})
    assert choose_models(run, [neighbor().spec]).name == "packets"
    traffic = cross_traffic().spec
    (name,) = traffic.cross_traffic
    refused = traffic.cross_traffic[name].model_copy(update={"transport": Transport(name="mltcp_cubic")})
    models = choose_models(run, [traffic.model_copy(update={"cross_traffic": {name: refused}})])
    assert (models.name, len(models.notes)) == ("fluid", 1)
    assert "allowed is a transport without MLTCP" in models.notes[0]
