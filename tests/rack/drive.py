# SPDX-License-Identifier: Apache-2.0
"""A run on lab hosts that pose as a rack, in a process of its own, which tests stop and kill.

drive.py start|resume|clean|count INVENTORY LAB FOLDER [SIGNAL POINT]

SIGNAL is sent to it at the POINT-th thing that it does: before a file is renamed, and before and after a program is
started on a host. `count` is `start`, and prints how many there were.
"""

import itertools
import json
import os
import sys
from pathlib import Path
from typing import Any

from roundabout.cli import clean, running
from roundabout.cli.main import main
from roundabout.runner import run
from roundabout.runner.hosts.connections import SshConnection
from roundabout.runner.run import Runner
from roundabout.spec.load import load_experiment
from roundabout.store import Run
from roundabout.testbeds import undo
from roundabout.testbeds.lab import Lab
from roundabout.testbeds.rack import facility, leases
from roundabout.testbeds.rack.facility import RackFacility
from roundabout.testbeds.rack.rack import Rack

action, inventory, lab_name, place, *rest = sys.argv[1:]
folder = Path(place)
signal_number, point = map(int, rest or [0, 0])
points = itertools.count(1)


class Told:
    """An observer that prints what a test waits for."""

    def __getattr__(self, name: str) -> Any:
        return lambda *words: print(name, *words, flush=True) if name in ("step", "leaves") else None


def come() -> None:
    if next(points) == point:
        os.kill(os.getpid(), signal_number)


def counted(function: Any) -> Any:
    def act(*arguments: Any) -> Any:
        come()
        done = function(*arguments)
        come()
        return done

    return act


def pose(lab: Lab) -> None:
    """Tell the rack how much slower the lab is, and that the programs are on its hosts already."""
    Rack.scale = lab.scale
    Rack.bytes_on_host = lambda _, paper_bytes: lab.bytes_on_host(paper_bytes)
    Rack.rate_on_host_bps = lambda _, paper_gbps: lab.rate_on_host_bps(paper_gbps)
    facility.run_playbook = lambda *_: None
    run.REPEATS = 1
    for name, value in json.loads(os.environ.get("LEASES", "{}")).items():
        setattr(leases, name, value)


def do() -> None:
    runner = Runner(RackFacility(Path(inventory)), Told(), undo, folder / "state/roundabout", folder / "journals/runs")
    if action == "resume":
        last = Run.open("last", folder / "runs")
        runner.resume(last, load_experiment(last.manifest["which"]))
    else:
        experiment = folder / "experiment.yaml"
        runner.start(load_experiment(experiment), str(experiment), folder / "runs")
    if action == "count":
        print("points", next(points) - 1)


pose(Lab.open(lab_name))
Path.rename = counted(Path.rename)
SshConnection.start = counted(SshConnection.start)
running.undo_when_ended()
# Through the command line's own handling of errors and signals, with this in the place of a command.
clean.command = do
sys.exit(main(["clean"]))
