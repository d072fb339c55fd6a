# SPDX-License-Identifier: Apache-2.0
"""Cost and throughput of each transport beside the kernel's own cubic: one veth pair, in turn, in one run.

    python benchmarks/ack_cost.py [--only NAME,...] [--rounds N] [--seconds S] [--short] [--json]

    cost        CPU of both ends and of interrupts per ACK, all paced at 800 Mbit/s: the same bursts, and the same ACKs
    programs    nanoseconds of that inside the transport's own eBPF programs, as the kernel counts them
    pacing      CPU per MB of cubic that its application holds to that rate, of cubic paced, and of dcqcn
    throughput  of one flow that nothing limits but the machine

Medians of rounds, with least and most. Linux's own transports that this kernel lacks are left out, and named. Needs
root, iperf3 and an otherwise idle machine.
"""

import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.shared.command import print_result, read_options
from benchmarks.shared.machine import hold_machine
from roundabout.checks.judge import programs
from roundabout.checks.judge.measurement import pair
from roundabout.runner.machine.process_leftovers import process_name
from roundabout.runner.transports import TOOL
from roundabout.spec.transports import FOLDER, Transport, registry
from roundabout.testbeds.lab.network import cc_allowlist

UNPACED = "cubic, not paced"
LIMITS = {"cost": 1.5, "throughput": 0.97}  # largest ratio of cost, least ratio of throughput, to cubic's


@contextmanager
def load_programs(transports: dict[str, Transport]) -> Iterator[dict[str, list[int]]]:
    """Load the transports, and yield the ids of each one's own programs."""
    owner, own = process_name("bench-ack-cost"), dict[str, list[int]]()
    try:
        for name in transports:
            if name in registry.KERNELS_OWN:
                cc_allowlist.allow(name, owner)
                continue
            before = programs.program_times_ns()
            subprocess.run([TOOL, "load", name, "--owner", owner], check=True, capture_output=True)
            own[name] = [each for each in programs.program_times_ns() if each not in before]
        yield own
    finally:
        for name in transports:
            if name in registry.KERNELS_OWN:
                cc_allowlist.disallow(name, owner)
            else:
                subprocess.run([TOOL, "unload", name, "--owner", owner], capture_output=True)


def summarize(samples: list[float], base: list[float]) -> dict[str, float]:
    """Return median, least and most of the samples, and the same of their ratios to `base`, round by round."""
    ratios = [one / other for one, other in zip(samples, base, strict=True)]
    return {
        "median": statistics.median(samples),
        "least": min(samples),
        "most": max(samples),
        "ratio": statistics.median(ratios),
        "ratio_least": min(ratios),
        "ratio_most": max(ratios),
    }


def in_kernel(names: list[str]) -> list[str]:
    """Return the transports that this kernel can run; print the names of the others."""
    available = cc_allowlist.loaded_congestion_controls()
    missing = [name for name in names if name in registry.KERNELS_OWN and name not in available]
    if missing:
        print(f"not in this kernel, and left out: {', '.join(missing)}", file=sys.stderr)
    return [name for name in names if name not in missing]


def drop_stuck(found: dict[str, list[Any]], rounds: int) -> dict[str, list[Any]]:
    """Return the samples of transports whose flows completed in every round; print the names of the others."""
    stuck = [name for name, samples in found.items() if len(samples) < rounds]
    if stuck:
        print(f"flows got stuck, and are left out: {', '.join(stuck)}", file=sys.stderr)
    if "cubic" in stuck:
        sys.exit("error: cubic's own flows got stuck, and all others are compared with them")
    return {name: samples for name, samples in found.items() if name not in stuck}


def measure(transports: dict[str, Transport], rounds: int, seconds: int, *, short: bool) -> dict[str, Any]:
    """Return summaries of cost and throughput of each transport, and nanoseconds in its programs."""
    with load_programs(transports) as own:
        contestants = transports if short else {**transports, UNPACED: transports["cubic"]}
        cost = drop_stuck(pair.measure_cost(contestants, rounds, seconds, unpaced=(UNPACED,)), rounds)
        inside = {} if short else pair.measure_program_time(transports, own, seconds)
        gbps = drop_stuck(pair.measure_throughput(transports, rounds, seconds), rounds)
    return {
        **{
            unit: {name: summarize(found, of_each["cubic"]) for name, found in of_each.items()}
            for unit in pair.Cost._fields
            for of_each in ({name: [getattr(each, unit) for each in found] for name, found in cost.items()},)
        },
        "programs_ns": {name: found[0] for name, found in inside.items() if found},
        "throughput_gbps": {name: summarize(found, gbps["cubic"]) for name, found in gbps.items()},
    }


def format_result(result: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of a report on the result of `measure`."""
    for name, found in result["per_ack"].items():
        if name != UNPACED:
            inside = f", {result['programs_ns'][name]:.0f} ns in its programs" if name in result["programs_ns"] else ""
            yield f"{name:12} {_ratio(found, '.2f')} cubic's CPU per ACK, {found['median']:.2f} us{inside}"
    for name, found in result["throughput_gbps"].items():
        yield f"{name:12} {_ratio(found, '.3f')} cubic's throughput, {found['median']:.2f} Gbit/s"
    cost = {name: found["median"] for name, found in result["per_megabyte"].items()}
    if cost.keys() >= {"dcqcn", UNPACED}:
        costs = ", ".join(f"{name} {cost[name]:.0f}" for name in (UNPACED, "cubic", "dcqcn"))
        pacing, whole = cost["cubic"] - cost[UNPACED], cost["dcqcn"] - cost[UNPACED]
        yield f"pacing       {pacing:.0f} of the {whole:.0f} us per MB by which dcqcn exceeds cubic without ({costs})"
    yield f"limits: at most {LIMITS['cost']} times cubic's CPU, and at least {LIMITS['throughput']} of its throughput"


def _ratio(found: dict[str, float], form: str) -> str:
    return f"{found['ratio']:{form}} ({found['ratio_least']:{form}} to {found['ratio_most']:{form}})"


def main() -> None:
    """Measure transports, and print the figures."""
    options = read_options(__doc__, {"rounds": 1, "seconds": 1}, only="", rounds=5, seconds=3)
    every = [each for each in registry.transport_names() if each != "cubic" and (each == "reno" or not options.short)]
    names = in_kernel(options.only.split(",") if options.only else every)
    read = {FOLDER: Path()}
    transports = {name: Transport.model_validate({"name": name}, context=read) for name in ("cubic", *names)}
    with hold_machine():
        result = measure(transports, options.rounds, options.seconds, short=options.short)
    print_result(options, result, format_result(result))


if __name__ == "__main__":
    main()
