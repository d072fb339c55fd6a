# SPDX-License-Identifier: Apache-2.0
"""Trials that are computed before their turn, on all processors. The engine leaves Python to other threads."""

import os
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

from roundabout.models.packets import Fabric, PlayedTrial, play_trial
from roundabout.plan import PlannedTrial, with_simulated_jobs
from roundabout.testbeds.packets.loads import plan_loads


class TrialsAhead:
    """The trials that come next, of which as many are computed at once as there are processors.

    Only so many are begun that no more results wait than that.
    """

    def __init__(self, fabric: Fabric, processors: int | None = None) -> None:
        """Use as many processors, or all of this process if None."""
        self._fabric = fabric
        self._left: deque[PlannedTrial] = deque()
        self._begun: dict[str, Future[PlayedTrial]] = {}
        self._pool: ThreadPoolExecutor | None = None
        self._stop = threading.Event()
        self.processors = processors or len(os.sched_getaffinity(0))

    @contextmanager
    def computing(self, trials: Sequence[PlannedTrial]) -> Iterator[None]:
        """Compute these trials ahead while the context lasts; at its end, drop unused results."""
        self._left, self._begun = deque(trials), {}
        self._stop.clear()
        with ThreadPoolExecutor(self.processors, "packets-ahead") as pool:
            self._pool = pool
            try:
                yield
            finally:
                self._pool = None
                self._stop.set()
                pool.shutdown(cancel_futures=True)

    def play(self, trial: PlannedTrial) -> PlayedTrial:
        """Return the played trial, which may have been computed before. Raises UnsupportedError."""
        self._begin_next()
        begun = self._begun.pop(trial.key, None)
        self._begin_next()
        return begun.result() if begun else self._compute(trial)

    def _begin_next(self) -> None:
        while self._pool and self._left and len(self._begun) < self.processors:
            trial = self._left.popleft()
            self._begun[trial.key] = self._pool.submit(self._compute, trial)

    def _compute(self, trial: PlannedTrial) -> PlayedTrial:
        if trial.spec.cluster and not trial.spec.jobs:
            trial = replace(trial, spec=with_simulated_jobs(trial.spec, trial.seed)[0])
        loads = plan_loads(trial)
        return play_trial(trial.spec, trial.seed, self._fabric, is_stopped=self._stop.is_set, loads=loads.loads)
