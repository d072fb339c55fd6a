# SPDX-License-Identifier: Apache-2.0
"""A run on lab hosts that pose as a rack, as a process that tests stop and interrupt (interruption_points.py).

    python -m tests.rack.lab_hosts.rack_process run|resume|clean INVENTORY FOLDER [SIGNALS]

SIGNALS is JSON, a signal by a point's number; how many points there were is written to FOLDER/count.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from roundabout.cli.main import main
from roundabout.cli.runs import clean
from roundabout.runner import run
from roundabout.runner.hosts.connections import SshConnection
from roundabout.runner.machine import machine_lease, undo_journal
from roundabout.runner.run import Runner
from roundabout.spec.loader import load_experiment
from roundabout.store import Run
from roundabout.terminal import execution
from roundabout.testbeds import undo
from roundabout.testbeds.rack import provider, rack_lease
from roundabout.testbeds.rack.provider import RackProvider
from tests.runner.interruptions.interruption_points import Points, hooked

action, inventory, place, *rest = sys.argv[1:]
folder = Path(place)
points = Points({int(number): each for number, each in json.loads("".join(rest) or "{}").items()})


class ReportingObserver:
    """An observer that prints what a test waits for."""

    def __getattr__(self, name: str) -> Any:
        return lambda *words: print(name, *words, flush=True) if name in ("step", "leaves") else None


def pose() -> None:
    """Make the rack find that the programs are on its hosts already."""
    provider.run_playbook = lambda *_: None
    run.MAX_REPEATS = 1
    for name, value in json.loads(os.environ.get("LEASES", "{}")).items():
        setattr(rack_lease, name, value)


def do() -> None:
    runner = Runner(
        RackProvider(Path(inventory)), ReportingObserver(), undo, folder / "state/roundabout", folder / "journals/runs"
    )
    if action == "clean":
        with machine_lease.hold("machine", "clean", runner.state):
            undo_journal.raise_together(undo_journal.replay(runner.journals, undo, print))
    elif action == "resume":
        last = Run.open("last", folder / "runs")
        runner.resume(last, load_experiment(last.manifest["which"]))
    else:
        experiment = folder / "experiment.yaml"
        runner.start(load_experiment(experiment), str(experiment), folder / "runs")


pose()
hooked(points)
SshConnection.start = points.around(SshConnection.start)
execution.undo_when_ended()
# Through the command line's own handling of errors and signals, with this in the place of a command.
clean.command = do
status = main(["clean"])
(folder / "count").write_text(str(points.count))
sys.exit(status)
