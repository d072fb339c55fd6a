# SPDX-License-Identifier: Apache-2.0
"""A run on a disk that is full: python -m tests.store.full_disk LIBRARY FOLDER EXPERIMENT EVERY [FIRST].

Counts the calls that take room; then, for every EVERY-th of them, a child in which that one fails, or all from that one
on. Each must end with one message, and leave what `resume` can finish. Prints what is wrong, and the counts.
"""

import ctypes
import json
import os
import sys
import traceback
from pathlib import Path

from analysis.reports.summary import summarize_run
from roundabout.spec import Experiment, load_experiment
from roundabout.store import Run, StoreError
from tests.computed_runs import RUNNER


def found(run: Run) -> dict:
    """What its study finds, but for the run's name."""
    return summarize_run(run).record() | {"run": None}


def work(experiment: Experiment, file: str, folder: Path) -> dict:
    run = RUNNER.start(experiment, file, folder)
    result = found(run)
    run.write_summary(result)
    return result


def attempt(library: ctypes.CDLL, file: str, disk: Path, full: tuple[int, bool], undisturbed: dict) -> str:
    """What is not as it should be where the disk is `full` at a call, once or from then on; empty where all is well."""
    experiment = load_experiment(file)
    library.full_disk(str(disk).encode(), *full)
    said = ""
    try:
        work(experiment, file, disk)
    except StoreError as error:
        said = f"{error.message} | {error.hint}"
    library.full_disk(b"", 0, 0)
    if said and ("the disk is full" not in said or "roundabout resume" not in said):
        return said
    for run in Run.all(disk):
        if not (run.path / "manifest.json").exists():
            return f"{run.path} has trials and no manifest"
        run.check()
        if found(RUNNER.resume(run, experiment)) != undisturbed:
            return "resumed, it comes to something else"
    return ""


def main() -> None:
    library, folder, file, every = ctypes.CDLL(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    library.full_disk(str(folder / "undisturbed").encode(), 0, 0)
    if os.fork() == 0:  # children alone do anything, or their children would miss its threads
        result = work(load_experiment(file), file, folder / "undisturbed")
        (folder / "result").write_text(json.dumps([library.full_disk_counted(), result]))
        os._exit(0)
    os.wait()
    calls, undisturbed = json.loads((folder / "result").read_text())
    tried = range(1, calls, every)
    for at in tried:
        for stays in (False, True):
            if os.fork() == 0:
                try:
                    wrong = attempt(library, file, folder / f"{at}-{stays}", (at, stays), undisturbed)
                except BaseException:
                    wrong = traceback.format_exc()
                if wrong:
                    print(f"call {at}, {'all from then on' if stays else 'once'}: {wrong}", flush=True)
                os._exit(0)
            os.wait()
    print(f"{calls} calls, {2 * len(tried)} tried")


main()
