# SPDX-License-Identifier: Apache-2.0
"""Random trials of two jobs, played packet by packet."""

from typing import Any

from hypothesis import strategies as st

from roundabout.models.packets import Fabric, PlayedTrial, play_trial
from roundabout.spec import TrialSpec
from roundabout.spec.patterns import PATTERNS
from tests.trials import build_trial
from tests.two_phases import two_phases

SAMPLE_MS = 0.1
RATE = 43e9 / 8
FILE: dict[str, Any] = {
    "topology": "dumbbell-3x3",
    "transport": {"name": "dcqcn", "T_us": 55},
    "iterations": 2,
}
HOSTS = ("s0", "s1", "s2", "s3", "s4", "s5")


def profile(pattern: str, size: int, alone_ms: float) -> dict[str, Any]:
    return two_phases(0.5, size, alone_ms, pattern=pattern)


@st.composite
def trials(draw: st.DrawFn, queues: tuple[str, ...] = ("thresholds", "step", "drop-tail")) -> TrialSpec:
    """Two jobs of random patterns on random hosts, beside each other."""
    hosts = draw(st.permutations(HOSTS))
    patterns = draw(st.tuples(*(st.sampled_from(sorted(PATTERNS)) for _ in range(2))))
    sizes = draw(st.tuples(*(st.integers(3 * 64, 2_000_000) for _ in range(2))))
    workers = (hosts[:2], hosts[2 : draw(st.sampled_from([4, 6]))])
    jobs = {
        name: {
            "profile": f"p{name}",
            "workers": list(own),
            "flows": draw(st.integers(1, 4)),
            "start_offset_ms": draw(st.sampled_from([0.0, 0.3])),
            **draw(st.sampled_from([{}, {"priority": 3}])),
        }
        for name, own in zip("ab", workers, strict=True)
    }
    # Twice what the narrowest way takes, whichever links the pattern's transfers share.
    profiles = {
        f"p{name}": profile(pattern, size, 6 * size / RATE * 1e3)
        for name, pattern, size in zip("ab", patterns, sizes, strict=True)
    }
    spec = build_trial(**FILE, jobs=jobs, profiles=profiles)
    # An experiment is refused if its DCQCN gets no marks; the model plays that all the same.
    return spec.model_copy(update={"queue": draw(st.sampled_from(queues))})


def play(spec: TrialSpec, seed: int = 1) -> PlayedTrial:
    return play_trial(spec, seed, Fabric(timeout_us=500), SAMPLE_MS)


def sent_bytes(spec: TrialSpec, name: str) -> int:
    return spec.iterations_of(name) * sum(
        each.bytes for phase in spec.jobs[name].profile.phases for each in spec.jobs[name].transfers(phase)
    )
