# SPDX-License-Identifier: Apache-2.0
"""Share and speed-up of `unfair-vgg19` in a lab whose bursts are coarse, foretold packet by packet.

    python -m tests.packets.comparisons.lab_bursts D:TD[:PACKETS] ... [--iterations 16] [--seeds 3] [--json]

D is the lab's dilation, TD the dilation of its transport, and PACKETS how many packets a NIC sends at once (3). For the
transport, a lab in which it is dilated TD / D times more than jobs is a lab at TD whose jobs are that many times
shorter. So jobs are played that many times shorter, with the lab's bursts and its feedback, and their times are
multiplied back. Nothing else of the lab is played: no late timers, no ACKs, no kernel.
"""

import argparse
import json
from typing import NamedTuple

import numpy as np

import roundabout
from roundabout.models.packets import PS_PER_MS, Fabric, play_trial
from roundabout.models.packets.fabric import payload_bytes
from roundabout.models.packets.first_iteration import first_bandwidths
from roundabout.spec import TrialSpec
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


def figures(lab: Lab | None, iterations: int, seed: int) -> dict[str, float]:
    """Return the share, the speed-up, and the median iterations, ms, in a lab. None stands for packets alone."""
    found: dict[str, float] = {}
    for cell in roundabout.load_experiment("unfair-vgg19", only=["fair", "unfair", "fig-1"]).cells:
        spec, fabric, times_as_long = with_iterations(cell.spec, iterations), Fabric(), 1.0
        if lab:
            spec, times_as_long = lab.applied_to(spec), lab.shortening
            fabric = lab.fabric(spec)
        if cell.variant == "unfair":
            rates = first_bandwidths(spec, seed, fabric)
            found["share"] = rates["j1"] / rates["j2"]
        ends = [each["end"][0] / PS_PER_MS for each in play_trial(spec, seed, fabric).iterations.values()]
        times = np.concatenate([np.diff(each, prepend=0.0) for each in ends])
        found[f"{cell.variant}_ms"] = float(np.median(times)) * times_as_long
    return {"speedup": found["fair_ms"] / found["unfair_ms"], **found}


def main() -> None:
    """Print one line for each lab."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labs", nargs="*", metavar="D:TD[:PACKETS]", help="without any: packets alone")
    parser.add_argument("--iterations", type=int, default=16)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    for words in asked.labs or [""]:
        dilation, *rest = words.split(":")
        lab = Lab(float(dilation), float(rest[0]), *map(int, rest[1:])) if words else None
        found = [figures(lab, asked.iterations, seed) for seed in range(1, asked.seeds + 1)]
        if asked.json:
            print(json.dumps({"lab": words, "burst_bytes": lab and lab.burst_bytes, "found": found}), flush=True)
            continue
        shown = ", ".join(
            f"{name} {np.mean([each[name] for each in found]):.3g} "
            f"({min(each[name] for each in found):.4g} to {max(each[name] for each in found):.4g})"
            for name in ("share", "speedup", "fair_ms", "unfair_ms")
        )
        bursts = f", bursts of {lab.burst_bytes / 1e3:.0f} kB" if lab else ""
        print(f"{words or 'packets'}{bursts}: {shown}", flush=True)


if __name__ == "__main__":
    main()
