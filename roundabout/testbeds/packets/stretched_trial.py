# SPDX-License-Identifier: Apache-2.0
"""A trial whose jobs compute for other times than their profiles say, as the packet-level model draws them."""

from collections.abc import Mapping, Sequence

import numpy as np

from roundabout.models.packets.jobs import draw_stretches
from roundabout.spec import TrialSpec
from roundabout.spec.job import ResolvedJob
from roundabout.spec.profile import ProfileScaling

EQUAL = 1e-5
"""Largest difference of two factors that count as one: instants in tables are rounded to 1 ns."""


def stretch_computing(spec: TrialSpec, stretches: Mapping[str, Sequence[float]], seed: int) -> TrialSpec:
    """Return the trial with computing times multiplied by factors like the `stretches` of its jobs, one an iteration.

    A job whose stretches the seed gives is unchanged. The computing times of another job get the mean of its stretches,
    and their standard deviation as jitter, which the seed draws.
    """
    jobs = {
        name: _stretch(job, stretches.get(name), draw_stretches(spec, name, seed)) for name, job in spec.jobs.items()
    }
    return spec.model_copy(update={"jobs": jobs})


def _stretch(job: ResolvedJob, wanted: Sequence[float] | None, drawn: Sequence[float]) -> ResolvedJob:
    if wanted is None or np.allclose(wanted, np.resize(drawn, len(wanted)), rtol=0, atol=EQUAL):
        return job
    mean = float(np.mean(wanted))
    profile = job.profile.scale_by(ProfileScaling(compute=mean))
    # The jitter of a spec is below 1.
    jitter = min(float(np.std(wanted)) / mean, 0.99)
    return job.model_copy(update={"profile": profile, "jitter": jitter})
