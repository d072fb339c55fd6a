# SPDX-License-Identifier: Apache-2.0
"""Counters of hosts that send by a known schedule, against which recovered periods and demands are compared."""

from dataclasses import dataclass

import numpy as np

from analysis.advice.counters import HostCounter

BEGIN_NS = 1_760_000_000 * 10**9
BEGIN_BYTES = 10**12


@dataclass(frozen=True)
class Schedule:
    """A job that sends at `gbps` in the last `duty` of each period; lengths of computing vary by `jitter`."""

    period_ms: float = 870.0
    duty: float = 430 / 870
    gbps: float = 25.0
    jitter: float = 0.0

    def counter(
        self,
        *,
        lasts_s: float = 30.0,
        step_ms: float = 10.0,
        scrape_jitter_ms: float = 0.0,
        rounded_bytes: int = 1,
        noise: float = 0.0,
        clock_offset_ms: float = 0.0,
        seed: int = 0,
    ) -> HostCounter:
        """Return the counter of one host whose clock is ahead; bytes arrive late by `noise` of a step's bytes."""
        common, own = np.random.default_rng(seed), np.random.default_rng([seed, round(abs(clock_offset_ms) * 1e3)])
        iterations = int(lasts_s * 1e3 / self.period_ms) + 2
        compute_ms = self.period_ms * (1 - self.duty) * (1 + self.jitter * common.normal(size=iterations))
        parts = np.column_stack([compute_ms, np.full(iterations, self.period_ms * self.duty)]).ravel()
        corners_ms = np.concatenate([[0], np.cumsum(parts)])
        sent = np.concatenate(
            [[0], np.cumsum(np.tile([0, self.gbps * self.period_ms * self.duty / 8 * 1e6], iterations))]
        )
        planned_ms = np.arange(0, lasts_s * 1e3, step_ms)
        at_ms = planned_ms + own.uniform(0, scrape_jitter_ms, len(planned_ms)) if scrape_jitter_ms else planned_ms
        values = np.interp(at_ms - clock_offset_ms, corners_ms, sent)
        if noise:
            late = own.uniform(0, noise * self.gbps * step_ms / 8 * 1e6, len(values))
            values = np.maximum.accumulate(np.maximum(values - late, 0))
        values = np.round((BEGIN_BYTES + values) / rounded_bytes) * rounded_bytes
        return HostCounter((BEGIN_NS + at_ms * 1e6).astype(np.int64), values)
