# SPDX-License-Identifier: Apache-2.0
"""The estimated effect of a lack of CPU time on a trial's figures.

The estimate is a guess (docs/results/disturbed-trials.md holds it against measured trials), in which losses add up. A
share s of stolen CPU time makes work that fills the CPU last 1 / (1 - s) times as long, and a link that stands still
for that share makes transfers last as much longer. A job beside other traffic has only what is left of a link, so that
it loses a larger share of its own. A late wake-up delays its iteration by as much.
"""

from collections.abc import Mapping

import pyarrow as pa

from roundabout.store.trial_states import DISTURBANCE

WHOLE = 0.99  # largest share that counts, so that a trial without any CPU time has a finite estimate
# Factor from the loss of a link or CPU to that of a job beside other traffic. It was fitted to 17 attempts with up to
# 26 % stolen, of which 3 exceeded the estimate without it, by 1.6 times at most. Too small, it hides a bias; too
# large, it widens intervals of jobs alone for nothing.
CROWDING = 2.0


def estimate_disturbance(measured: Mapping[str, float | None], iterations: pa.Table) -> dict[str, float]:
    """Return how much longer iterations may have been for want of CPU, as a share of an iteration, by column name.

    `measured` is the result of `validity_checks.resource_stats`, where None counts as no loss, and `iterations` the
    trial's table. Lateness is compared with the median iteration of the job with the shortest ones.
    """
    shares = (min(measured.get(name) or 0.0, WHOLE) for name in ("steal_mean", "stalled_share"))
    late_ms, shortest_ms = measured.get("late_p90_ms") or 0.0, _shortest_median_ms(iterations)
    late = late_ms / shortest_ms if shortest_ms else 0.0
    return {DISTURBANCE: CROWDING * sum(share / (1 - share) for share in shares) + late}


def _shortest_median_ms(iterations: pa.Table) -> float:
    medians = iterations.group_by("job").aggregate([("iteration_ms", "approximate_median")])
    return min(medians["iteration_ms_approximate_median"].to_pylist(), default=0.0)
