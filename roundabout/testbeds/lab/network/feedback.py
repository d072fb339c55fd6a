# SPDX-License-Identifier: Apache-2.0
"""How long a lab holds CNPs back, so that feedback takes as long as in the topology's network."""

from statistics import fmean

from roundabout.spec.trial_spec import TrialSpec

ROUND_TRIP_US = 100.0
"""Real time from a mark to its echo at the sender's device: the feedback of a lab that holds nothing back.

Measured: 60 to 141 us (docs/explanation/time-dilation.md). An error of 20 us moves feedback by 0.2 us of the papers'
time at d = 100, and by 1 us at d = 17.4. Each trial measures its own (`feedback_us`).
"""


def held_us(trial: TrialSpec, host: str, dilation: float) -> int:
    """Return how long the flows of `host` hold a CNP back, in us on the host. It is 0 if the lab is slower by itself.

    The mean over the host's paths takes as long as the topology says, jitter included, in time stretched by `dilation`.
    """
    pairs = {pair for job in trial.jobs.values() for pair in job.pairs}
    pairs |= {pair for traffic in trial.cross_traffic.values() for pair in traffic.pairs}
    own = [trial.topology.feedback_delay(*pair).mean_us for pair in sorted(pairs) if pair[0] == host]
    return max(0, round(fmean(own) * dilation - ROUND_TRIP_US)) if own else 0
