# SPDX-License-Identifier: Apache-2.0
"""Figures of BMWG's tables from the trials of `roundabout acceptance --tables`.

Definitions are those of draft-calabria-bmwg-ai-fabric-training-bench-04 (sections 3.2, 4, 7, 8 and 10). Rates include
headers, as interfaces count bytes. Figures are means over repetitions, and `CV` is the standard deviation over the mean
of a table's first figure (section 13, item 7). A figure that a testbed lacks is None.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from statistics import fmean, stdev
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.statistics.cumulative_counter import Floats
from analysis.statistics.fairness import jain_index
from roundabout.spec import TrialSpec
from roundabout.store import Run
from roundabout.store.trial_states import CPU_SHORTAGE, STATES, largest_disturbance, state_of_record

TableReader = Callable[[str], pa.Table]
Row = dict[str, float | None]
"""Figures by the title of their column."""
WARM_UP_MS = 100.0  # time of flows that is left out
WINDOW_MS = 50.0  # of rates while flows converge: a turn of a flow takes 20 ms, and hosts count bytes every 10 ms
STEP_MS = 10.0  # between two such windows, and so the resolution of a convergence time
NEAR = 0.1  # largest distance from the fair share of flows that have converged (section 7.3)
PAUSES, PAUSED = "rx_(prio3_)?pause", "rx_(prio3_)?pause_duration"  # mlx5's counters, at hosts and switches


class BenchmarkTrial:
    """The tables of one trial."""

    def __init__(self, table: TableReader, record: Mapping[str, Any]) -> None:
        self.record = record
        self.key, self.spec = str(record["trial"]), TrialSpec.model_validate(record["spec"])
        self._table = table
        self.start_ns = pc.min(self.table("iterations")["start_ns"]).as_py() or 0

    def table(self, name: str, **place: str) -> pa.Table:
        """Return the trial's rows of a table, whose columns have the values in `place`."""
        rows = self._table(name)
        for column, value in {"trial": self.key, **place}.items():
            rows = rows.filter(pc.equal(rows[column], value))
        return rows

    def sent_bytes(self, instants_ms: Sequence[float] | Floats, table: str, column: str, **place: str) -> Floats:
        """Return a cumulative counter of bytes at instants after the trial's start, over all interfaces.

        `place` names its rows.
        """
        rows, total = self.table(table, **place).sort_by("controller_ns"), np.zeros(len(instants_ms))
        for interface in rows["interface"].unique():
            own = rows.filter(pc.equal(rows["interface"], interface))
            at_ms = (own["controller_ns"].to_numpy() - self.start_ns) / 1e6
            total += np.interp(instants_ms, at_ms, own[column].to_numpy().astype(float))
        return total

    def gbps(self, table: str, column: str, **place: str) -> float:
        """Return the mean rate from the end of the warm-up to the end of flows."""
        begin, end = self.sent_bytes([WARM_UP_MS, self.end_ms], table, column, **place)
        return float(end - begin) * 8e-6 / (self.end_ms - WARM_UP_MS)

    def largest_rise(self, pattern: str) -> float | None:
        """Return the rise of a device counter whose name matches, of the port with the largest; None without any."""
        rows = self.table("device_counters")
        rows = rows.filter(pc.match_substring_regex(rows["counter"], f"^{pattern}$"))
        ends = rows.group_by(["host", "device", "counter"]).aggregate([("value", "min"), ("value", "max")]).to_pylist()
        return max((float(row["value_max"] - row["value_min"]) for row in ends), default=None)

    @property
    def onset_ms(self) -> float:
        """Return the instant at which the last job arrives."""
        return max(job.arrives_ms for job in self.spec.jobs.values())

    @property
    def end_ms(self) -> float:
        """Return the instant at which the first job departs."""
        return min(job.departs_ms or 0.0 for job in self.spec.jobs.values())

    @property
    def senders(self) -> list[str]:
        """Return the host of each job's first worker."""
        return [job.workers[0] for job in self.spec.jobs.values()]

    @property
    def receiver(self) -> str:
        """Return the host of the last worker of the first job."""
        return next(iter(self.spec.jobs.values())).workers[-1]


Measure = Callable[[BenchmarkTrial], Row]


class PlayedTrials:
    """The trials of runs of the tables' experiment, by variant.

    Valid trials count, or else disturbed ones, or else invalid ones in which an iteration ended.
    """

    def __init__(self, runs: Sequence[Run]) -> None:
        self._found: list[tuple[Mapping[str, Any], TableReader]] = []
        for run in runs:
            table = cache(partial(run.table, valid_only=False))
            self._found += [(each, table) for each in run.trials()]

    def of(self, variant: str) -> list[BenchmarkTrial]:
        """Return the trials of a variant that count."""
        own = [BenchmarkTrial(table, record) for record, table in self._found if record["variant"] == variant]
        played = [each for each in own if len(each.table("iterations"))]
        by_state = [[each for each in played if state_of_record(each.record) == state] for state in STATES]
        return next(filter(None, by_state), [])

    def disturbance(self, variant: str) -> float | None:
        """Return the largest estimated effect of a lack of CPU time on a variant's figures; None for valid trials."""
        return largest_disturbance(each.record for each in self.of(variant))

    def lacks_cpu(self, variant: str) -> bool:
        """Return True if a variant has no valid trial, and one that lacked CPU time."""
        records = [record for record, _ in self._found if record["variant"] == variant]
        return not any(each["valid"] for each in records) and any(each.get(CPU_SHORTAGE) for each in records)


def benchmark_rows(trials: PlayedTrials, variants: Mapping[int, str], measure: Measure) -> dict[int, Row]:
    """Return a row of mean figures for each level of a table. `variants` has the variant of each level."""
    played = {level: trials.of(variant) for level, variant in variants.items()}
    return {level: _mean_row([measure(each) for each in found]) for level, found in played.items() if found}


def _mean_row(rows: Sequence[Row]) -> Row:
    known = {name: [value for row in rows if (value := row[name]) is not None] for name in rows[0]}
    first = next(iter(known.values()))
    spread = stdev(first) / fmean(first) if len(first) > 1 and fmean(first) else None
    means = {name: fmean(values) if values else None for name, values in known.items()}
    return {**means, "repetitions": len(rows), "CV": spread}


def interference(played: PlayedTrials, alone: str) -> Measure:
    """Return the measurement of JCT and its interference factor. `alone` is the variant with one job (section 10.3)."""
    trials = played.of(alone)
    baseline_ms = fmean(map(_jct_ms, trials)) if trials else None

    def measure(trial: BenchmarkTrial) -> Row:
        jct_ms, job = _jct_ms(trial), next(iter(trial.spec.jobs.values()))
        count, sent = len(job.workers), job.profile.phases[-1].bytes or 0
        return {
            "JCT interference factor": jct_ms / baseline_ms if baseline_ms else None,
            "contention JCT, ms": jct_ms,
            "baseline JCT, ms": baseline_ms,
            "JCT ratio": jct_ms / _roofline_ms(trial),
            "S, MB": sent * count / (2 * (count - 1)) / 1e6,
            "S_fabric, MB": (pc.mean(trial.table("iterations")["sent_bytes"]).as_py() or 0) / 1e6,
        }

    return measure


def _roofline_ms(trial: BenchmarkTrial) -> float:
    """Return the draft's Roofline_seq: computing and sending in turn, at the line rate of a worker's NIC, ms.

    A phase's bytes are S times the algorithm's factor, 2 (N - 1) / N of a ring.
    """
    job = next(iter(trial.spec.jobs.values()))
    line_gbps = trial.spec.topology.first_hop(job.workers[0], job.gpu(0)).link.line_rate_gbps
    per_phase = ((each.compute_ms or 0.0) + (each.bytes or 0) * 8e-6 / line_gbps for each in job.profile.phases)
    return trial.spec.iterations * sum(per_phase)


def _jct_ms(trial: BenchmarkTrial) -> float:
    """Return the mean over jobs of the time from a job's first start to its last worker's end, ms."""
    iterations = trial.table("iterations").group_by("job").aggregate([("start_ns", "min"), ("comm_end_ns", "max")])
    return fmean((row["comm_end_ns_max"] - row["start_ns_min"]) / 1e6 for row in iterations.to_pylist())


def incast(trial: BenchmarkTrial) -> Row:
    """Return the figures of an incast (section 7.2)."""
    gbps = trial.gbps("counters", "rx_bytes", host=trial.receiver)
    line_gbps = trial.spec.topology.first_hop(trial.receiver, 0).link.line_rate_gbps
    flows = trial.table("flows")
    segments, marked = (pc.sum(flows[name]).as_py() for name in ("delivered_segments", "delivered_ce_segments"))
    pauses, paused_us = trial.largest_rise(PAUSES), trial.largest_rise(PAUSED)
    return {
        "throughput, Gbit/s": gbps,
        "of line rate": gbps / line_gbps,
        "JFI of senders": jain_index([trial.gbps("counters", "tx_bytes", host=each) for each in trial.senders]),
        "ECN marking ratio, %": 100 * marked / segments if segments else None,
        "PFC pauses/s, worst port": pauses and pauses * 1e3 / trial.end_ms,
        "PFC paused, ms/s, worst port": paused_us and paused_us / trial.end_ms,
    }


def imbalance(uplinks: Mapping[str, str], leaf: str) -> Measure:
    """Return the measurement of the balance of a leaf's uplinks (section 8.1, and JFI of section 8.4)."""

    def measure(trial: BenchmarkTrial) -> Row:
        spec = trial.spec
        counts = Counter(
            route[1].link.name
            for name, job in spec.jobs.items()
            for transfer in job.transfers(job.profile.phases[-1])
            for route in job.routes(name, transfer, spec.topology)
            if route[1].link.name in uplinks  # further flows of a server with several NICs leave by other leaves
        )
        rates = [trial.gbps("queue", "tx_bytes", host=leaf, link=each) for each in uplinks]
        lines = {link.name: link.line_rate_gbps for link in spec.topology.links}
        used = [100 * rate / lines[link] for link, rate in zip(uplinks, rates, strict=True)]
        is_sampled = bool(sum(rates))
        return {
            "MMR": max(counts.values()) * len(uplinks) / counts.total(),
            "JFI of links": jain_index(rates) if is_sampled else None,
            "busiest link, %": max(used) if is_sampled else None,
            "idlest link, %": min(used) if is_sampled else None,
            "throughput, Gbit/s": sum(
                trial.gbps("counters", "rx_bytes", host=job.workers[-1]) for job in spec.jobs.values()
            ),
        }

    return measure


def convergence(trial: BenchmarkTrial) -> Row:
    """Return the time from the begin of more flows until all rates are near their fair share (section 7.3).

    The fair share is the mean rate of all flows, in each window of WINDOW_MS.
    """
    instants_ms = np.arange(trial.onset_ms, trial.end_ms - STEP_MS, STEP_MS)
    sent = np.array([trial.sent_bytes(instants_ms, "counters", "tx_bytes", host=each) for each in trial.senders])
    steps = round(WINDOW_MS / STEP_MS)
    rates = (sent[:, steps:] - sent[:, :-steps]) * 8e-6 / WINDOW_MS
    shares = rates.mean(axis=0)
    is_near = (np.abs(rates - shares) <= NEAR * shares).all(axis=0) & (shares > 0)
    return {
        "convergence time, ms": float(np.argmax(is_near)) * STEP_MS + WINDOW_MS if is_near.any() else None,
        "converged repetitions": float(is_near.any()),
        "fair share, Gbit/s": float(shares.mean()),
        "JFI at the end": jain_index(rates[:, -1].tolist()),
    }
