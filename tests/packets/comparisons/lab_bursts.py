# SPDX-License-Identifier: Apache-2.0
"""Share and speed-up of an experiment's pairs in a lab whose bursts are coarse, predicted packet by packet.

    python -m tests.packets.comparisons.lab_bursts D:TD[:PACKETS] ... [--experiment unfair-vgg19] [--iterations 16]
        [--seeds 3] [--json]

D is the lab's dilation, TD the dilation of its transport, and PACKETS how many packets a NIC sends at once (3). For the
transport, a lab in which it is dilated TD / D times more than jobs is a lab at TD whose jobs are that many times
shorter. So jobs are played that many times shorter, with the lab's bursts and its feedback, and their times are
multiplied back. Nothing else of the lab is played: no late timers, no ACKs, no kernel. Every variant is held against
`fair`, with the first job's bandwidth over the second's in the first iteration, and the least speed-up of the jobs.
"""

import argparse
import json
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

import roundabout
from roundabout.models.packets import PS_PER_MS, Fabric, play_trial
from roundabout.models.packets.first_iteration import first_bandwidths
from roundabout.models.packets.hardware_defaults import payload_bytes
from roundabout.spec import TrialSpec
from roundabout.spec.experiment import Cell
from roundabout.spec.profile import ProfileScaling
from roundabout.testbeds.lab.network.feedback import ROUND_TRIP_US

SCALE = 100
SEGMENT_BYTES = 1448


class Lab(NamedTuple):
    """A lab by its dilation, that of its transport, and the packets that a NIC sends at once."""

    dilation: float
    transport_dilation: float
    packets: int = 3

    @property
    def shortening(self) -> float:
        """Return how many times shorter jobs are for the transport."""
        return self.transport_dilation / self.dilation

    @property
    def burst_bytes(self) -> float:
        """Return the payload of a burst beside the set's thresholds, in bytes."""
        return self.packets * SEGMENT_BYTES * SCALE / self.transport_dilation

    def fabric(self, spec: TrialSpec) -> Fabric:
        """Return NICs that send the lab's bursts."""
        return Fabric(burst_packets=max(1, round(self.burst_bytes / payload_bytes(spec.topology.mtu_bytes))))

    def applied_to(self, spec: TrialSpec) -> TrialSpec:
        """Return the trial as the lab's transport sees it."""
        by = ProfileScaling(compute=1 / self.shortening, bytes=1 / self.shortening)
        shorter = {
            name: job.model_copy(update={"profile": job.profile.scale_by(by)}) for name, job in spec.jobs.items()
        }
        delays = spec.topology.delays
        late_us = max(0.0, ROUND_TRIP_US / self.transport_dilation - spec.feedback_delay.mean_us)
        later = delays.model_copy(update={"cnp_to_cut_us": delays.cnp_to_cut_us + late_us})
        topology = spec.topology.model_copy(update={"delays": later})
        return spec.model_copy(update={"jobs": shorter, "topology": topology})


def with_iterations(spec: TrialSpec, iterations: int) -> TrialSpec:
    """Return the trial with as many iterations of each job."""
    jobs = {name: job.model_copy(update={"iterations": iterations}) for name, job in spec.jobs.items()}
    return spec.model_copy(update={"jobs": jobs, "iterations": iterations})


def figures(lab: Lab | None, cells: Sequence[Cell], iterations: int, seed: int) -> dict[str, dict[str, float]]:
    """Return the share, the least speed-up, and the first job's median iteration, ms, of each cell by its levels.

    Without a lab they are those of packets alone.
    """
    medians: dict[str, list[float]] = {}
    found: dict[str, dict[str, float]] = {}
    for cell in sorted(cells, key=lambda each: each.variant != "fair"):
        spec, fabric, times_as_long = with_iterations(cell.spec, iterations), Fabric(), 1.0
        if lab:
            spec, times_as_long = lab.applied_to(spec), lab.shortening
            fabric = lab.fabric(spec)
        others = [f"{name} {level}" for name, level in cell.levels.items() if name != "variant"]
        ends = [each["end_ps"][0] / PS_PER_MS for each in play_trial(spec, seed, fabric).iterations.values()]
        times = [float(np.median(np.diff(each, prepend=0.0))) * times_as_long for each in ends]
        fair = medians.setdefault(" ".join(others), times)
        first, second, *_ = first_bandwidths(spec, seed, fabric).values()
        found[" ".join([cell.variant, *others])] = {
            "share": first / second,
            "speedup": min(np.divide(fair, times)),
            "median_ms": times[0],
        }
    return found


def main() -> None:
    """Print one line for each lab."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labs", nargs="*", metavar="D:TD[:PACKETS]", help="without any: packets alone")
    parser.add_argument("--experiment", default="unfair-vgg19")
    parser.add_argument("--iterations", type=int, default=16)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    cells = [each for each in roundabout.load_experiment(options.experiment).cells if each.variant != "alone"]
    for words in options.labs or [""]:
        dilation, *rest = words.split(":")
        lab = Lab(float(dilation), float(rest[0]), *map(int, rest[1:])) if words else None
        found = [figures(lab, cells, options.iterations, seed) for seed in range(1, options.seeds + 1)]
        if options.json:
            print(json.dumps({"lab": words, "burst_bytes": lab and lab.burst_bytes, "found": found}), flush=True)
            continue
        print(f"{words}: bursts of {lab.burst_bytes / 1e3:.0f} kB" if lab else "packets", flush=True)
        for levels, values in found[0].items():
            of_seeds = {name: [each[levels][name] for each in found] for name in values}
            shown = (
                f"{name} {np.mean(all_):.3g} ({min(all_):.4g} to {max(all_):.4g})" for name, all_ in of_seeds.items()
            )
            print(f"  {levels}: {', '.join(shown)}", flush=True)


if __name__ == "__main__":
    main()
