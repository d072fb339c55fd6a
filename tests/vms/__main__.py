# SPDX-License-Identifier: Apache-2.0
"""`make rack-in-vms`: the whole way of a rack, on Debian machines that are booted here, and how long each stage takes.

    python3 -m tests.vms [--guests N] [--accelerator kvm] [--only STAGE ...]

All is below build/rack-in-vms: `image`, which is made once, and `run`, which goes on from its first stage that is not
done. Guests, bridges and what is captured live in namespaces of our own for processes, mounts and networks: when their
first process ends, however it ends, the kernel ends and removes what is left. Only files remain, in that folder.
"""

import argparse
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from roundabout.core.errors import RoundaboutError
from roundabout.runner.machine import machine_lease
from roundabout.runner.machine.state import STATE
from roundabout.terminal.lines import print_notice
from tests.bare.__main__ import REPOSITORY, Parts, isolation
from tests.vms import image, stages
from tests.vms.guests import Guest, Machines, connect, write_ssh

FOLDER = REPOSITORY / "build/rack-in-vms"
RUN = FOLDER / "run"
DONE = RUN / "done.json"
# Where others' leases are is hidden: no lab is ours in there. What programs keep for a while goes with it; what a run
# on guests must undo lies beside their disks.
INSIDE = 'mount -t tmpfs tmpfs /run; mount --bind "$0" /var/lib; exec env HOME=/run TMPDIR=/run "$@"'


def outside(words: Sequence[str]) -> int:
    """Make the image, then the rest in namespaces; the exit status."""
    parts = Parts()
    with machine_lease.hold("machine", "make rack-in-vms", STATE, wait_s=machine_lease.QUEUE_S, report=print_notice):
        print("== the image of the guests (once)", flush=True)
        with parts.part("the image"):
            image.build(FOLDER / "image")
        leftover = RUN / "lib"
        leftover.mkdir(parents=True, exist_ok=True)
        argv = apart(leftover, [sys.executable, "-m", "tests.vms", "--inside", *words])
        status = subprocess.run(argv, cwd=REPOSITORY).returncode
    if status == 0:
        shutil.rmtree(RUN)
    print(f"\n{parts}")
    return status


def apart(leftover: Path, words: Sequence[str]) -> list[str]:
    """A command in namespaces of its own, which end with us; what it notes in /var/lib stays in a folder."""
    return [*isolation(), "--net", "sh", "-c", INSIDE, str(leftover), *words]


def inside(guests: Sequence[Guest], accelerator: str, only: Sequence[str]) -> int:
    """All that needs guests; the exit status."""
    parts = Parts()
    done = json.loads(DONE.read_text()) if DONE.exists() else {}
    connect(guests)
    write_ssh(RUN, guests)
    machines = Machines(guests, image.Image(FOLDER / "image"), accelerator)
    rack = stages.Rack(RUN, machines)
    rack.write_inventory()
    try:
        print(f"\n== {len(guests)} guests boot", flush=True)
        with parts.part("boot"):
            machines.start(guests)
        stages.go_on(rack, done, lambda: DONE.write_text(json.dumps(done)), only)
    finally:
        with parts.part("shutting down"):
            machines.end()
        print(f"\n{parts}", *(f"{taken_s:6} s  {name}" for name, taken_s in done.items()), sep="\n")
    print("\nnot on hardware:", *stages.NOT_ON_HARDWARE, sep="\n  ")
    return 0


def main(words: Sequence[str]) -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.vms", description="a rack of machines that are booted here")
    parser.add_argument("--guests", type=int, choices=range(2, 9), default=2)
    parser.add_argument("--accelerator", choices=["tcg", "kvm"], default="tcg")
    every = [*stages.STAGES, *stages.ON_REQUEST]
    parser.add_argument("--only", choices=every, action="append", default=[], help="this stage, and no others")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    try:
        if options.inside:
            return inside([Guest(number, RUN) for number in range(options.guests)], options.accelerator, options.only)
        return outside(words)
    except RoundaboutError as error:
        print(f"error: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
