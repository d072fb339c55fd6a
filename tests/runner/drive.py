# SPDX-License-Identifier: Apache-2.0
"""A runner in a process of its own, for tests that interrupt or kill it: drive.py start|resume FOLDER [KILL_AT].

KILL_AT counts renames: each one makes something durable. The process kills itself right before that one; 0 only counts.
"""

import os
import signal
import sys
from pathlib import Path

from conftest import Workplace

from roundabout.cli.main import main
from roundabout.cli.running import _end

rename = Path.rename
count = 0


def counted(path, target):
    global count
    count += 1
    if count == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)
    return rename(path, target)


action, folder, *rest = sys.argv[1:]
kill_at = int(rest[0]) if rest else 0
Path.rename = counted
signal.signal(signal.SIGTERM, _end)
work = Workplace(folder)


def do():
    if action == "start":
        work.start((Path(folder) / "tiny.yaml").read_text())
    else:
        work.resume()
    print(count)


# Through the command line's own handling of errors and signals, with this in the place of a command.
import roundabout.cli.clean

roundabout.cli.clean.command = do
sys.exit(main(["clean"]))
