# SPDX-License-Identifier: Apache-2.0
"""Iterations of an experiment's levels packet by packet, and how evenly flows share a cable.

    python -m tests.packets.comparisons.cable_shares EXPERIMENT CABLE [--only LEVEL] [--set PATH=VALUE ...]
        [--burst PACKETS] [--iterations 6] [--seed 1]

CABLE is a link, in the direction from its first end. PACKETS leave a NIC at once: 24 are a lab's burst at a dilation of
17.4. What is printed is of windows of 10 ms in which all of the cable's flows send and it is full. Evenness is the mean
of Jain's index (1984): 1 where all rates are equal, 1/n where one of n flows has all. Increases a CNP are those of
DCQCN's reaction points, at rates up to half of an even one, up to an even one, and beyond. Rates part where they grow
with the rate.
"""

import argparse
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from roundabout.cli.experiments.experiments import load_checked_experiment
from roundabout.models.packets import PS_PER_MS, Fabric
from roundabout.models.packets.hardware_defaults import payload_bytes
from roundabout.models.packets.structures import Structure
from roundabout.models.packets.trial import open_trial
from roundabout.spec import TrialSpec
from roundabout.spec.assembly.overrides import overrides_from_texts
from tests.packets.comparisons.lab_bursts import with_iterations

WINDOW_MS = 10.0
FULL = 0.93
"""Share of a cable's payload rate from which on it counts as full."""
OF_EVEN = (0.5, 1.0)


class Shares(NamedTuple):
    """Each job's iterations in ms, the number of flows on the cable, their evenness, and their increases a CNP.

    Figures are nan where there is no such window.
    """

    iterations_ms: dict[str, list[float]]
    flows: int
    evenness: float
    increases: list[float]


def play(spec: TrialSpec, cable: str, fabric: Fabric, seed: int) -> Shares:
    """Play a trial, and return how its flows share a cable."""
    engine, _, jobs = open_trial(spec, seed, fabric)
    pairs = [
        number
        for name, added in jobs.items()
        for key, number in added.pairs.items()
        for hop in spec.topology.path(*spec.jobs[name].flow(name, *key, spec.topology))
        if (hop.link.name, hop.sender) == (cable, hop.link.ends[0])
    ]
    rate_gbps = next(link.payload_rate_gbps for link in spec.topology.links if link.name == cable)
    counted = [[(0, 0, 0)] * len(pairs)]
    while any(engine.completed(each.number) < spec.iterations_of(name) for name, each in jobs.items()):
        engine.run(round(len(counted) * WINDOW_MS * PS_PER_MS))
        counted.append([_counters(engine.pair_result(pair)) for pair in pairs])
    windows = np.diff(np.array(counted, float), axis=0)
    gbps = windows[..., 0] * payload_bytes(spec.topology.mtu_bytes) * 8 / WINDOW_MS / 1e6
    windows = windows[(gbps > 0).all(axis=1) & (gbps.sum(axis=1) > FULL * rate_gbps)]
    packets, cnps, increases = np.moveaxis(windows, 2, 0)
    evenness = packets.sum(axis=1) ** 2 / (packets**2).sum(axis=1) / len(pairs)
    place = np.digitize(packets / packets.mean(axis=1, keepdims=True), OF_EVEN)
    per_cnp = [increases[place == each].sum() / (cnps[place == each].sum() or np.nan) for each in range(3)]
    lengths = {name: engine.iterations(each.number)[0] for name, each in jobs.items()}
    times = {name: ((each["end_ps"] - each["start_ps"]) / PS_PER_MS).tolist() for name, each in lengths.items()}
    return Shares(times, len(pairs), float(evenness.mean()) if len(windows) else float("nan"), per_cnp)


def _counters(result: Structure) -> tuple[int, int, int]:
    increases = result.fast_increases + result.additive_increases + result.hyper_increases
    return result.delivered, result.cnps, increases


def main(arguments: Sequence[str] | None = None) -> None:
    """Print one line for each job and level."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment")
    parser.add_argument("cable")
    parser.add_argument("--only")
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE")
    parser.add_argument("--burst", type=int, default=1, metavar="PACKETS")
    parser.add_argument("--iterations", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    texts = dict(each.split("=", 1) for each in options.set) | ({"only": f"[{options.only}]"} if options.only else {})
    for cell in load_checked_experiment(options.experiment, None, overrides_from_texts(texts)).cells:
        spec, fabric = with_iterations(cell.spec, options.iterations), Fabric(burst_packets=options.burst)
        shares = play(spec, options.cable, fabric, options.seed)
        print(f"{cell.levels}: {shares.flows} flows on {options.cable}, evenness {shares.evenness:.2f}", flush=True)
        print("  increases a CNP:", ", ".join(f"{each:.2f}" for each in shares.increases), flush=True)
        for name, times in shares.iterations_ms.items():
            of_all = f"median {np.median(times):.1f}, mean {np.mean(times):.1f}"
            print(f"  {name}: {of_all}, {min(times):.0f} to {max(times):.0f} ms", flush=True)


if __name__ == "__main__":
    main()
