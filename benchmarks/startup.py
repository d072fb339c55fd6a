# SPDX-License-Identifier: Apache-2.0
"""CPU time of commands, against a Python that does nothing, started in turn with them.

    python benchmarks/startup.py [--rounds N | --short] [--json]

The first start of each command is not counted: it reads files into the cache, compiles modules and remembers answers.
The last command computes a run of an empty folder and reports on it.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

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
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Commands keep their compiled modules, as they do under Make (Makefile).
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, check=False)
    if done.returncode:
        sys.exit(f"error: {' '.join(command)} ended with {done.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure the start of commands, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument(
        "--short", action="store_true", help="one round without the run, to see that it runs; its figures mean nothing"
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rounds = 1 if options.short else options.rounds
    chosen = {name: words for name, words in COMMANDS.items() if words[0] != "run" or not options.short}
    with tempfile.TemporaryDirectory(prefix="roundabout-bench-") as folder:
        commands = {PEER: [sys.executable, "-c", "pass"]}
        for name, words in chosen.items():
            runs = ("--runs", folder) if words[0] in WITH_RUNS else ()
            commands[name] = [str(PROGRAM), *words, *runs]
        found = [{name: cpu_s(command) for name, command in commands.items()} for _ in range(rounds + 1)][1:]
    medians = {name: statistics.median(each[name] for each in found) for name in commands}
    if options.json:
        print(json.dumps({"rounds": rounds, "cpu_s": medians}, indent=1))
        return
    for name, median in medians.items():
        least, most = (limit(each[name] for each in found) for limit in (min, max))
        print(f"{name:18} median {median:6.3f} s, {least:6.3f} to {most:6.3f}: {median / medians[PEER]:5.1f} x {PEER}")


if __name__ == "__main__":
    main()
