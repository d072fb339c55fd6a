# SPDX-License-Identifier: Apache-2.0
"""A runner in a process of its own, for tests that interrupt or kill it: drive.py start|resume FOLDER [KILL_AT].

KILL_AT counts renames: each one makes something durable. The process kills itself right before that one; 0 only counts.
"""

import importlib
import itertools
import json
import os
import signal
import sys
from pathlib import Path

from conftest import Workplace

from roundabout.cli import clean, running
from roundabout.cli.main import main

action, folder, *rest = sys.argv[1:]
kill_at = int(rest[0]) if rest else 0
rename = Path.rename
renames = itertools.count(1)


def counted(path, target):
    if next(renames) == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)
    return rename(path, target)


def do():
    work = Workplace(folder)
    if action == "start":
        work.start((Path(folder) / "tiny.yaml").read_text())
    else:
        work.resume()
    print(next(renames) - 1)


Path.rename = counted
for name, value in json.loads(os.environ.get("CONSTANTS", "{}")).items():
    module, _, constant = name.rpartition(".")
    setattr(importlib.import_module(f"roundabout.runner.{module}"), constant, value)
signal.signal(signal.SIGTERM, running.end)
# Through the command line's own handling of errors and signals, with this in the place of a command.
clean.command = do
sys.exit(main(["clean"]))
