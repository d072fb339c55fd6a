# SPDX-License-Identifier: Apache-2.0
"""The rates of jobs while all of them first send, for which no more than the first iteration is played."""

import numpy as np

from roundabout.models.packets.engine import Engine, StopCheck
from roundabout.models.packets.hardware_defaults import Fabric, payload_bytes
from roundabout.models.packets.jobs import AddedJob
from roundabout.models.packets.structures import PS_PER_MS
from roundabout.models.packets.trial import open_trial
from roundabout.spec import TrialSpec

STEP_MS = 0.5
"""Interval at which delivered packets are counted. Between two counts they are taken to come evenly."""


def first_bandwidths(
    spec: TrialSpec, seed: int, fabric: Fabric, is_stopped: StopCheck = lambda: False
) -> dict[str, float]:
    """Return the payload rate of each job's worker while all jobs first send, in Gbit/s.

    The time runs from the first packet of the job that begins to send last to the end of the first worker's iteration.
    Jobs that never send together have rates of NaN. Raises UnsupportedError, and EngineError if it is stopped.
    """
    engine, _, jobs = open_trial(spec, seed, fabric)
    packet = payload_bytes(spec.topology.mtu_bytes)
    counted: list[list[int]] = [[0] * len(jobs)]
    while not any(engine.completed(each.number) for each in jobs.values()):
        engine.run(round(len(counted) * STEP_MS * PS_PER_MS), is_stopped=is_stopped)
        counted.append([packet * _delivered(engine, job) for job in jobs.values()])
    sent, at_ms = np.array(counted, float), STEP_MS * np.arange(len(counted))
    ends = [
        float(engine.iterations(each.number)["end_ps"][:, 0].min())
        for each in jobs.values()
        if engine.completed(each.number)
    ]
    begin_ms, end_ms = at_ms[max(int(np.argmax(column > 0)) for column in sent.T) - 1], min(ends) / PS_PER_MS
    if not (sent[-1] > 0).all() or begin_ms >= end_ms:
        return dict.fromkeys(jobs, float("nan"))
    carried = [np.interp(end_ms, at_ms, column) - np.interp(begin_ms, at_ms, column) for column in sent.T]
    return {
        name: float(size * 8 / 1e6 / (end_ms - begin_ms) / len(spec.jobs[name].workers))
        for name, size in zip(jobs, carried, strict=True)
    }


def _delivered(engine: Engine, job: AddedJob) -> int:
    return sum(engine.pair_result(pair).delivered for pair in job.pairs.values())
