# SPDX-License-Identifier: Apache-2.0
"""Common part of a fake host's programs, put before the text of each. The host's folder is the one above theirs.

A trial starts dozens of them, and json and pathlib would take most of the time of a start.
"""

import os
import sys

home = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
words = sys.argv[1:]


def option(name):
    """Return the word after --name."""
    return words[words.index(f"--{name}") + 1]


def fault(name):
    """Return the value of a fault of tests/fakes/testbed.py, once; None without it or later.

    A list has one value for each program that reads it, in turn.
    """
    path = f"{home}/faults/{name}"
    taken = f"{path}.{os.getpid()}"
    try:
        os.rename(path, taken)  # of programs that read it at once, one has it
    except FileNotFoundError:
        return None
    import json  # noqa: PLC0415 (samplers do without)

    with open(taken) as file:
        value = json.load(file)
    if not isinstance(value, list):
        return value
    if value[1:]:
        with open(taken, "w") as file:
            json.dump(value[1:], file)
        os.rename(taken, path)
    return value[0]


def say(**event):
    """Print an event, as trainers do (trainers/PROTOCOL.md)."""
    import json  # noqa: PLC0415 (samplers do without)

    print(json.dumps(event), flush=True)
