# SPDX-License-Identifier: Apache-2.0
"""CPU time of commands, against a Python that does nothing, started in turn with them.

    python benchmarks/startup.py [--rounds N | --short] [--json]

The first start of each command is not counted: it reads files into the cache, compiles modules and remembers answers.
The last command computes a run of an empty folder and reports on it.
"""

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.shared.command import children_cpu_s, print_result, read_options, take_turns

ROOT = Path(__file__).parents[1]
PROGRAM = Path(sys.executable).with_name("roundabout")
PEER = "python -c pass"
COMMANDS = {
    "--version": ("--version",),
    "--help": ("--help",),
    "list": ("list",),
    "validate FILE": ("validate", "experiments/catalog/hotnets22/unfair-vgg19.yaml"),
    "runs": ("runs",),
    "run unfair-vgg19": ("run", "unfair-vgg19", "--testbed", "fluid"),
}
WITH_RUNS = ("runs", "run")


def cpu_s(command: Sequence[str]) -> float:
    """Return the CPU seconds of a command and of the processes that it starts."""
    before_s = children_cpu_s()
    # Commands keep their compiled modules, as they do under Make (Makefile).
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, check=False)
    if done.returncode:
        sys.exit(f"error: {' '.join(command)} ended with {done.returncode}")
    return children_cpu_s() - before_s


def main() -> None:
    """Measure the start of commands, and print the figures."""
    options = read_options(__doc__, {"rounds": 1}, rounds=10)
    chosen = {name: words for name, words in COMMANDS.items() if words[0] != "run" or not options.short}
    with tempfile.TemporaryDirectory(prefix="roundabout-bench-") as folder:
        commands = {PEER: [sys.executable, "-c", "pass"]}
        for name, words in chosen.items():
            runs = ("--runs", folder) if words[0] in WITH_RUNS else ()
            commands[name] = [str(PROGRAM), *words, *runs]
        works = {name: partial(cpu_s, command) for name, command in commands.items()}
        found = {name: each[1:] for name, each in take_turns(works, options.rounds + 1).items()}
    medians = {name: statistics.median(each) for name, each in found.items()}
    lines = (
        f"{name:18} median {medians[name]:6.3f} s, {min(each):6.3f} to {max(each):6.3f}: "
        f"{medians[name] / medians[PEER]:5.1f} x {PEER}"
        for name, each in found.items()
    )
    print_result(options, {"rounds": options.rounds, "cpu_s": medians}, lines)


if __name__ == "__main__":
    main()
