# SPDX-License-Identifier: Apache-2.0
"""Command line of the benchmarks of engines, which measure each network in a process of its own."""

import argparse
import json
import subprocess
import sys
from typing import Any


def options(about: str | None, hosts: str) -> argparse.ArgumentParser:
    """Return a parser of the options that all benchmarks of engines have; `hosts` is the default of `--hosts`."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", default=hosts)
    parser.add_argument(
        "--short", action="store_true", help="about a second, to see that it runs; its figures mean nothing"
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--one", nargs="+", help=argparse.SUPPRESS)
    return parser


def measure_in_process(script: str, *words: object) -> dict[str, Any]:
    """Return what `script --one` measures of the network that `words` describe."""
    argv = [sys.executable, script, "--one", *map(str, words)]
    found: dict[str, Any] = json.loads(subprocess.run(argv, check=True, capture_output=True, text=True).stdout)
    return found
