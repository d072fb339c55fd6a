# SPDX-License-Identifier: Apache-2.0
"""A runner in a process of its own, for tests that interrupt or kill it.

python -m tests.runner.runner_process start|resume FOLDER
"""

import importlib
import json
import os
import sys
from pathlib import Path

from rich.console import Console

from roundabout.cli.main import main
from roundabout.cli.runs import clean
from roundabout.terminal import execution
from roundabout.terminal.run_progress import show_progress
from tests.fakes.workplace import Workplace

action, folder = sys.argv[1:]


def do():
    work = Workplace(folder)
    with show_progress(Console()) as work.notes:
        if action == "start":
            work.start((Path(folder) / "tiny.yaml").read_text())
        else:
            work.resume()


for name, value in json.loads(os.environ.get("CONSTANTS", "{}")).items():
    module, _, constant = name.rpartition(".")
    setattr(importlib.import_module(f"roundabout.runner.{module}"), constant, value)
execution.undo_when_ended()
# Through the command line's own handling of errors and signals, with this in the place of a command.
clean.command = do
sys.exit(main(["clean"]))
