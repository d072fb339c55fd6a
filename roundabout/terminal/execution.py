# SPDX-License-Identifier: Apache-2.0
"""Execution of a run from the command line: signals, the live display, and the tables at the end."""

import json
import os
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from roundabout.core.errors import UsageError
from roundabout.runner.run import Runner
from roundabout.runner.slurm import Slurm
from roundabout.runner.sweep import Sweep
from roundabout.runner.testbed import TestbedProvider
from roundabout.spec import Experiment
from roundabout.store import Run
from roundabout.store.files import return_tree_to_caller
from roundabout.terminal.screen import Screen, show_paths
from roundabout.terminal.validity import check_measured
from roundabout.testbeds import find_provider, undo

if TYPE_CHECKING:
    from roundabout.runner.progress_events import Follower

ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
"""Signals that end a run like Ctrl-C."""
AGAIN_S = 0.05
LAB_FACTORS = ("scale", "dilation")
"""Options of the lab, for which an experiment may have values of its own."""
TRANSPORT_DILATION = "transport_dilation"
"""The lab's option that only experiments have. It applies with the experiment's own dilation only."""
EVERY_LAB_FACTOR = (*LAB_FACTORS, TRANSPORT_DILATION)


def requested_provider(testbed: str | None, inventory: Path | None, **options: float | None) -> TestbedProvider:
    """Return the testbed provider that the command line requests. `options` are those of a testbed, by name.

    Raises UsageError if the testbed does not exist or lacks an option, and SpecError if the inventory is invalid.
    """
    every = {"testbed": testbed, "inventory": inventory, **options}
    where = {name: str(value) for name, value in every.items() if value is not None}
    found = find_provider(where)
    if strange := where.keys() - found.where.keys():
        raise UsageError(f"found --{min(strange)}, expected none: testbed {found.where['testbed']} has no such option")
    return found


def provider_for_experiment(
    experiment: Experiment, testbed: str | None, inventory: Path | None, **options: float | None
) -> TestbedProvider:
    """Return the testbed provider for an experiment. `options` are those of a testbed: `scale`, `dilation`, `jobs`.

    On the lab, the experiment's scale and dilation apply unless `options` has others; another dilation is the
    transport's, too. Raises UsageError and SpecError like `requested_provider`.
    """
    where = requested_provider(testbed, inventory, **options)
    if where.where["testbed"] != "lab":
        return where
    of_lab = {name: options.get(name) or getattr(experiment, name) for name in LAB_FACTORS}
    if not options.get("dilation"):
        of_lab[TRANSPORT_DILATION] = experiment.transport_dilation
    return requested_provider(testbed, inventory, **of_lab)


def execute(
    work: Callable[[Runner | Sweep], Run],
    where: TestbedProvider,
    *,
    as_json: bool,
    executor: str | None = None,
    is_last: bool = True,
) -> Run:
    """Run `work` on a testbed, then store and print the summary, write the report, and return the run.

    With `as_json`, stdout gets only the summary as JSON, and nothing unless `is_last`; everything else goes to stderr.
    With `executor`, the trials run on the nodes of a Slurm cluster. Raises UsageError if `executor` is invalid, and
    UnmeasuredError at the end if no trial is valid.
    """
    # These imports take a second, and only this function needs them.
    from analysis.reading.trial_inputs import resolve_inputs  # noqa: PLC0415
    from analysis.reports.report import terminal_report, write_report  # noqa: PLC0415
    from analysis.reports.summary import summarize_run  # noqa: PLC0415

    slurm = None if executor is None else Slurm.parse(executor)
    undo_when_ended()
    console = Screen(stderr=as_json)
    with _name_resume(console) as observer:
        run = work(
            Sweep(where, observer, slurm) if slurm else Runner(where, observer, undo, resolve_inputs=resolve_inputs)
        )
        observer.step("making the report")
        summary = summarize_run(run)
        run.write_summary(summary.record())
        report = write_report(run)
        return_tree_to_caller(run.path)
    console.print(terminal_report(summary))
    show_paths(console, report, run.path)
    if as_json and is_last:
        json.dump(summary.record(), sys.stdout, indent=2)
        print(flush=True)
    check_measured(run)
    return run


@contextmanager
def _name_resume(console: Screen) -> Iterator["Follower"]:
    """Show a run's progress. If a signal ends the run, print the command that finishes it."""
    from roundabout.terminal.run_progress import show_progress  # noqa: PLC0415 - takes long, as above

    observer: Follower | None = None
    try:
        with show_progress(console) as observer:
            yield observer
    except (KeyboardInterrupt, SystemExit):
        if observer and observer.progress.path:
            line = f"interrupted; finish it with `roundabout resume {shlex.quote(observer.progress.path)}`"
            console.print(line, soft_wrap=True, highlight=False)
        raise


def undo_when_ended() -> None:
    """Make SIGTERM and SIGHUP end this process like Ctrl-C, so that all changes to hosts are undone.

    A dropped SSH session sends SIGHUP. Signals that `nohup` ignores stay ignored.
    """
    for number in ENDING_SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _end)
    sys.unraisablehook = _end_despite_destructor


def _end(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)


def _end_despite_destructor(ignored: "sys.UnraisableHookArgs") -> None:
    """Send the ending signal again, because Python ignores an exception in a destructor."""
    if isinstance(ignored.exc_value, (KeyboardInterrupt, SystemExit)):
        threading.Timer(AGAIN_S, os.kill, (os.getpid(), signal.SIGTERM)).start()
    else:
        sys.__unraisablehook__(ignored)
