# SPDX-License-Identifier: Apache-2.0
"""Common part of a fake host's programs, put before the text of each. The host's folder is the one above theirs."""

import json
import os
import sys
from pathlib import Path

home = Path(__file__).resolve().parent.parent
words = sys.argv[1:]


def option(name):
    """Return the word after --name."""
    return words[words.index(f"--{name}") + 1]


def fault(name):
    """Return the value of a fault of tests/fakes/testbed.py, once; None without it or later."""
    path = home / "faults" / name
    try:
        taken = path.rename(path.with_suffix(f".{os.getpid()}"))  # of programs that ask at once, one has it
    except FileNotFoundError:
        return None
    return json.loads(taken.read_text())


def say(**event):
    """Print an event, as trainers do (trainers/PROTOCOL.md)."""
    print(json.dumps(event), flush=True)
