# SPDX-License-Identifier: Apache-2.0
"""Command line, measuring and printing of the benchmarks."""

import json
import resource
import time
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, TypeVar

T = TypeVar("T")


def read_options(about: str | None, short: Mapping[str, Any], **defaults: Any) -> Namespace:
    """Return the options of a benchmark: `--json`, `--short`, and one for each default, of the default's type.

    A tuple lists the allowed words, of which the first is the default. `--short` replaces defaults by those in `short`.
    """
    parser = ArgumentParser(description=about, formatter_class=RawDescriptionHelpFormatter)
    for name, default in defaults.items():
        option = f"--{name.replace('_', '-')}"
        if isinstance(default, tuple):
            parser.add_argument(option, choices=default, default=default[0])
        else:
            parser.add_argument(option, type=type(default), default=default)
    parser.add_argument("--short", action="store_true", help="to see that it runs; its figures mean nothing")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.short:
        parser.set_defaults(**short)
        options = parser.parse_args()
    return options


def print_result(options: Namespace, result: Any, lines: Iterable[str]) -> None:
    """Print the result as JSON if `--json` is given, or else the lines of a report on it."""
    print(json.dumps(result, indent=1) if options.json else "\n".join(lines))


def take_turns(contenders: Mapping[str, Callable[[], T]], rounds: int) -> dict[str, list[T]]:
    """Return what each contender measures in each round, in which they take turns: a busy machine affects all alike."""
    found: dict[str, list[T]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, measure in contenders.items():
            found[name].append(measure())
    return found


def quickest(repeats: int, work: Callable[[], T], prepare: Callable[[], object] = int) -> tuple[float, T]:
    """Return the least CPU seconds of `repeats` calls of `work`, each after `prepare`, and the last one's result."""
    taken = []
    for _ in range(repeats):
        prepare()
        begin = time.process_time()
        found = work()
        taken.append(time.process_time() - begin)
    return min(taken), found


def children_cpu_s() -> float:
    """Return the CPU seconds of all child processes that have ended, and of theirs."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure_in_process(measure: Callable[..., T], *arguments: Any) -> T:
    """Return the result of `measure` in a new process, whose peak memory is of this work alone."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(measure, *arguments).result()
