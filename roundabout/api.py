# SPDX-License-Identifier: Apache-2.0
"""The Python interface: experiments loaded or built, planned, run, and their results as tables and figures.

Notebooks need nothing else. `iterations`, `bandwidth`, `queues` and `marks` give a run's measurements as DataFrames.
`compare`, `verdicts`, `sweeps` and `fit_degradation` give the results of a run or of a published one (`open_results`).
`draw_jobs`, `draw_comparison` and `draw_degradation` draw these DataFrames on an axis of the caller.

All of it raises RoundaboutError (`roundabout.core.errors`), whose message says what was found and what was expected.
"""

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from analysis.attribution.attribution import Attribution
from analysis.attribution.recorded_trial import RecordSources
from analysis.dataframes.comparison import Interval, compare, interval
from analysis.dataframes.degradation import Degradation, fit_degradation, sweeps
from analysis.dataframes.measurements import bandwidth, iterations, marks, queues
from analysis.dataframes.sources import Results, open_results
from analysis.dataframes.verdicts import verdicts
from analysis.expectations.expectation_check import complain
from analysis.reading import data
from analysis.reading.trial_inputs import resolve_inputs
from roundabout.cli.experiments.experiments import check_experiment, load_checked_experiment
from roundabout.plan import Plan
from roundabout.runner.run import Runner, make_run_plan
from roundabout.spec import Experiment, loader
from roundabout.spec.assembly.overrides import overrides_from_values
from roundabout.store import Run
from roundabout.store.files import return_tree_to_caller
from roundabout.terminal import replays
from roundabout.terminal.execution import provider_for_experiment
from roundabout.terminal.run_progress import show_progress
from roundabout.terminal.screen import Screen
from roundabout.testbeds import undo

if TYPE_CHECKING:
    from analysis.dataframes.figures import STYLE, draw_comparison, draw_degradation, draw_jobs

__all__ = [
    "STYLE",
    "Attribution",
    "Degradation",
    "Interval",
    "Results",
    "bandwidth",
    "build_experiment",
    "compare",
    "draw_comparison",
    "draw_degradation",
    "draw_jobs",
    "explain_delays",
    "explain_records",
    "fit_degradation",
    "interval",
    "iterations",
    "load_experiment",
    "marks",
    "open_results",
    "open_run",
    "plan_experiment",
    "query",
    "queues",
    "run_experiment",
    "sweeps",
    "verdicts",
]


def __getattr__(name: str) -> Any:
    """Return a name of `analysis.dataframes.figures`, which is imported at its first use: matplotlib takes long."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("analysis.dataframes.figures"), name)


def load_experiment(
    name_or_path: str | Path,
    *,
    length: str | None = None,
    set: Mapping[str, Any] | None = None,  # noqa: A002 - as on the command line
    only: Sequence[str] = (),
    repetitions: int | None = None,
) -> Experiment:
    """Return an experiment of the catalog, or of a file, after all checks.

    `length` is `quick` or `full`, where the file has these; `set` gives fields by dotted path, over every level;
    `only` names variants, which are run with those that they need, and levels of other factors.
    """
    changes = dict(set or {}) | ({"only": list(only)} if only else {})
    changes |= {} if repetitions is None else {"repetitions": repetitions}
    return load_checked_experiment(str(name_or_path), length, overrides_from_values(changes))


def build_experiment(fields: Mapping[str, Any], folder: str | Path = ".") -> Experiment:
    """Return an experiment from the fields that a file would have; `folder` has profiles, topologies and programs."""
    experiment = loader.build_experiment(fields, Path(folder), complain)
    return check_experiment("experiment", experiment)


def plan_experiment(experiment: Experiment, *, testbed: str | None = None, inventory: str | Path | None = None) -> Plan:
    """Return the trials that a run would have there, in their order, and how long each takes (`expected_s`)."""
    where = provider_for_experiment(experiment, testbed, Path(inventory) if inventory else None)
    return make_run_plan(where, experiment, testbed_identity={}, artefacts={})


def run_experiment(  # noqa: PLR0913 - as on the command line
    experiment: Experiment,
    *,
    testbed: str | None = None,
    inventory: str | Path | None = None,
    scale: float | None = None,
    dilation: float | None = None,
    runs: str | Path = "runs",
    quiet: bool = False,
) -> Run:
    """Run an experiment into a new folder of `runs`, and print progress to stderr, unless `quiet`.

    `roundabout report` makes its summary and page. A lab needs root, and must be run from the main thread. Changes of
    the machine are undone when this returns or raises.
    """
    where = provider_for_experiment(
        experiment, testbed, Path(inventory) if inventory else None, scale=scale, dilation=dilation
    )
    with show_progress(Screen(stderr=True, quiet=quiet)) as observer:
        run = Runner(where, observer, undo, resolve_inputs=resolve_inputs).start(experiment, None, Path(runs))
    return_tree_to_caller(run.path)
    return run


def open_run(which: str | Path = "last", runs: str | Path = "runs") -> Run:
    """Return a run by its folder, its id, its experiment's name (the latest), or `last`.

    `table(name)` gives a table of docs/reference/store.md, of the valid trials; `trials()` gives the records of all of
    them.
    """
    return Run.open(which, Path(runs))


def explain_delays(
    run: Run,
    *,
    only: Sequence[str] = (),
    model: str | None = None,
    repetitions: int | None = None,
    divide_transport: bool = False,
) -> Attribution:
    """Return what delays each job of a run, ms an iteration: other jobs, links and causes.

    Models play the run's trials again (docs/how-to/explain.md), and parts sum to the measured delay. `only` names
    variants, or levels of other factors; `model` is 'packets' or 'fluid', by default chosen by the run; `repetitions`
    limits those that are explained; `divide_transport` divides the congestion control's part among other jobs.
    """
    return replays.explain_run(
        run, levels=only, model=model, repetitions=repetitions, divides_transport=divide_transport
    )


def explain_records(  # noqa: PLR0913 - as on the command line
    records: str | Path,
    topology: str | Path,
    *,
    jobs: str | Path | None = None,
    alone: str | Path | None = None,
    transport: str | None = None,
    capacity_gbps: float | None = None,
    model: str | None = None,
) -> Attribution:
    """Return what delays each job of a cluster, ms an iteration, by what the jobs recorded.

    `records` is a folder with a folder of profiler records for each job, or a file of byte counters; `topology` is a
    name or a file. `jobs` is a file with the hosts of each job, and `alone` has records of jobs that had the network to
    themselves. `transport` names the jobs' congestion control; without it, or with `model` 'fluid', they are played
    flow by flow. `capacity_gbps` is the payload rate of the cables of a scheduler's topology, Gbit/s. `notes` of the
    result say what records do not show.
    """
    paths = {name: Path(path) if path else None for name, path in (("jobs", jobs), ("alone", alone))}
    sources = RecordSources(Path(records), str(topology), **paths, capacity_gbps=capacity_gbps, transport=transport)
    return replays.explain_records(sources, model=model)


def query(run: Run, sql: str, **values: Any) -> pa.Table:
    """DuckDB's answer to `sql` over a run's tables; `values` are written $name in it."""
    return data.query(run, sql, **values)
