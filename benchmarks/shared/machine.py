# SPDX-License-Identifier: Apache-2.0
"""This machine's lease, for benchmarks that make labs, load transports or measure the kernel."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from roundabout.core.errors import RoundaboutError
from roundabout.runner.machine import machine_lease
from roundabout.runner.machine.process_leftovers import find_leftovers
from roundabout.runner.machine.state import STATE
from roundabout.terminal.lines import print_error, print_notice
from roundabout.testbeds import undo


@contextmanager
def hold_machine() -> Iterator[None]:
    """Hold the machine after the runs and tests that have it, and remove what killed benchmarks left.

    What a benchmark makes must have a `process_name`. Exit without root, or if another program keeps the machine.
    """
    if os.geteuid() != 0:
        sys.exit("error: this needs root\n  sudo " + " ".join([sys.executable, *sys.argv]))
    owner = f"benchmark {Path(sys.argv[0]).stem}"
    try:
        with machine_lease.hold("machine", owner, STATE, wait_s=machine_lease.QUEUE_S, report=print_notice):
            for entry in find_leftovers(STATE):
                undo(entry)
            yield
    except RoundaboutError as error:
        print_error(error.message, error.hint)
        sys.exit(1)
