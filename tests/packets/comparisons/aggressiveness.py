# SPDX-License-Identifier: Apache-2.0
"""What MLTCP's F does to two jobs over DCQCN, packet by packet.

    python -m tests.packets.comparisons.aggressiveness

prints shares with a constant F, and offsets of jobs that begin 20 ms apart (docs/results/mltcp-dcqcn.md).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from roundabout.models.packets import PS_PER_MS, Fabric, play_trial
from roundabout.models.packets.trial import open_trial
from roundabout.spec import TrialSpec
from tests.trials import build_trial
from tests.two_phases import two_phases

BASE = {"name": "dcqcn", "set": "hotnets22"}
MLTCP = {"name": "mltcp_dcqcn", "set": "hotnets22"}
ADAPTIVE = {**MLTCP, "slope": 1, "intercept": 1}
WAYS: dict[str, dict[str, Any]] = {
    "fair": BASE,
    "MLTCP": MLTCP,
    "MLTCP on the decrease": {**MLTCP, "acts_on": "decrease"},
    "adaptive": {**ADAPTIVE, "acts_on": "additive"},
    "adaptive, R_HAI too": ADAPTIVE,
}
BYTES = {"vgg19-fig1": 574_680_000, "saturating": 752_500_000}
"""What a job of these profiles sends in an iteration."""
STEP_MS = 20


def build(first: dict[str, Any], second: dict[str, Any], **fields: Any) -> TrialSpec:
    jobs = {
        "j1": {"workers": ["s0", "s2"], "jitter": 0, **first},
        "j2": {"workers": ["s1", "s3"], "jitter": 0, **second},
    }
    return build_trial(jobs=jobs, **fields)


def shares(acts_on: str, aggressiveness: float) -> Iterator[float]:
    """Yield the rate of a job with a constant F over that of one whose F is 1, for each step of time."""
    known = {**MLTCP, "slope": 0, "iteration_bytes": 10**12, "gap_us": 20_000, "acts_on": acts_on}
    first, second = ({"profile": "p", "transport": {**known, "intercept": F}} for F in (aggressiveness, 1))
    spec = build(first, second, profiles={"p": two_phases(20, 1_500_000_000, 280)}, iterations=1)
    engine, _, jobs = open_trial(spec, 1, Fabric())
    before = np.zeros(2)
    for step in range(1, 20):
        engine.run((step + 1) * STEP_MS * PS_PER_MS)
        now = np.array(
            [sum(engine.pair_result(pair).delivered for pair in job.pairs.values()) for job in jobs.values()]
        )
        one, other = now - before
        before = now
        yield float(one / other)


def offsets_ms(profile: str, transport: dict[str, Any], iterations: int) -> list[float]:
    """Return how much later the second job begins to send, in each iteration."""
    if transport["name"] == "mltcp_dcqcn":
        transport = {**transport, "iteration_bytes": BYTES[profile], "gap_us": 75_000}
    spec = build({}, {"start_offset_ms": 20}, profile=profile, transport=transport, iterations=iterations)
    played = play_trial(spec, 1, Fabric()).iterations
    first, second = (played[name][0]["compute_end_ps"] / PS_PER_MS for name in ("j1", "j2"))
    return [float(each) for each in second - first]


def main() -> None:
    for acts_on in ("increase", "decrease", "additive"):
        for aggressiveness in (2, 4):
            found = " ".join(f"{share:.2f}" for share in shares(acts_on, aggressiveness))
            print(f"F = {aggressiveness} on {acts_on:9} shares of {STEP_MS} ms: {found}")
    for profile in BYTES:
        for way, transport in WAYS.items():
            found = " ".join(f"{offset:.0f}" for offset in offsets_ms(profile, transport, 7))
            print(f"{profile:11} {way:22} ms apart: {found}")


if __name__ == "__main__":
    main()
