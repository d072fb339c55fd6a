# SPDX-License-Identifier: Apache-2.0
"""The command line, interrupted at a point, as interruption_points.py has them.

    python -m tests.runner.interruptions.interrupted_command SIGNALS COUNT WORD...

SIGNALS is JSON, a signal by a point's number; how many points there were is written to the file COUNT.
"""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

from roundabout.cli.main import main
from roundabout.runner.hosts import playbooks
from roundabout.runner.hosts.connections import LocalConnection, SshConnection
from tests.runner.interruptions.interruption_points import Points, hooked

signals, count, *words = sys.argv[1:]
points = Points({int(number): each for number, each in json.loads(signals).items()})

hooked(points)
for connection in (LocalConnection, SshConnection):
    connection.start = points.around(connection.start)
playbooks.subprocess = SimpleNamespace(**{**vars(subprocess), "Popen": points.around(subprocess.Popen)})
status = main(words)
Path(count).write_text(str(points.count))
sys.exit(status)
