# SPDX-License-Identifier: Apache-2.0
"""Experiments with real traces: jobs of each kind, and traces that are too long to be played."""

import shutil
from pathlib import Path

import pytest

from roundabout.core.errors import UsageError
from roundabout.plan import with_simulated_jobs
from roundabout.plan.clusters import trace_requests_of
from roundabout.spec import load_experiment
from tests.spec.cluster_traces.trace_files import EXAMPLES, HELIOS, TABLES, Table

pytestmark = pytest.mark.unit

EXPERIMENT = """\
schema: 1
name: real
about: Jobs of a real trace
topology: cluster-24
transport: {{name: dcqcn, T_us: 125}}
cluster:
  scheduler: themis
  trace: {{kind: {kind}, file: {file}, workers: {{least: 1, most: 16}}, iterations: {{least: 5, most: 9}}}}
  {slice}
factors: {{variant: {{themis: {{}}}}}}
repetitions: 1
"""
WIDE = HELIOS.with_cell(0, "gpu_num", "4")
LONG = WIDE.with_cell(0, "end_time", "2020-06-02 20:14:08")
YEARS = WIDE.with_cell(0, "end_time", "2030-06-01 10:00:00")
LATE = WIDE.with_cell(0, "submit_time", "2020-04-01 10:00:00")  # the others come two months later


def spec(folder: Path, kind: str, table: Table, part: str = ""):
    (folder / table.file).write_text(table.text())
    path = folder / "real.yaml"
    path.write_text(EXPERIMENT.format(kind=kind, file=table.file, slice=part))
    return load_experiment(path).cells[0].spec


@pytest.mark.parametrize("kind", TABLES)
def test_an_experiment_takes_the_jobs_of_each_kind(tmp_path, kind):
    name, table = kind.split(maxsplit=1)[0], TABLES[kind][0]
    shutil.copytree(EXAMPLES / name, tmp_path, dirs_exist_ok=True)
    found = spec(tmp_path, name, table)
    wanted = trace_requests_of(found, 1)
    assert {each.name.rsplit("-", 1)[0] for each in wanted} == {
        each.name for each in found.submitted if each.gpus <= 16
    }
    assert wanted[0].arrives_s == 0


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (LONG, r"helios trace, job 101-1: found [\d,]+ iterations, expected 100,000 at most"),
        (YEARS, r"helios trace, job 101-1: found [\d,]+ iterations, expected 100,000 at most"),
        (LATE, r"helios trace, job 102-2: found an arrival 5,270,426 s after the first, expected 1,000,000 s at most"),
    ],
)
def test_a_trace_that_would_play_for_hours_is_refused(tmp_path, table, said):
    with pytest.raises(UsageError, match=said):
        trace_requests_of(spec(tmp_path, "helios", table), 1)


@pytest.mark.parametrize("table", [LONG, YEARS, LATE])
def test_a_window_of_a_long_trace_is_played(tmp_path, table):
    found, timeline = with_simulated_jobs(spec(tmp_path, "helios", table, "slice: {from_s: 10, lasts_s: 5}"), 1)
    assert [each.job for each in timeline.allocations] == ["101-1"]
    assert (
        found.jobs["101-1.1"].iterations >= trace_requests_of(found, 1)[0].iterations
    )  # with fewer workers it has more
