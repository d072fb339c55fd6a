# SPDX-License-Identifier: Apache-2.0
"""A run over loads of cross traffic as the thesis' sweeps: iteration times of each model by the load on the wire."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np

from analysis.reading.cells import experiment_of
from analysis.reading.data import iterations, query
from analysis.statistics.bootstrap import Array
from analysis.statistics.degradation.sweep import Level, Sweep
from roundabout.fluid import fluid_limits
from roundabout.spec import ResolvedJob, TrialSpec
from roundabout.store import Run

LOAD = "load_gbps"
"""The factor that a sweep is over."""
HEADER_BYTES = 66
"""Ethernet, IPv4, and TCP with timestamps: what a packet is longer than its payload."""


@dataclass
class LoadedJob:
    """One job under one kind of cross traffic, level by level.

    `setting` holds the levels of all factors but the load, and `levels` maps the load asked for to each repetition's
    load as measured on the wire (payload, Gbit/s) and its iteration times in s. `spec` is that of the heaviest level.
    """

    variant: str
    job_name: str
    setting: dict[str, Any]
    spec: TrialSpec
    traffic: str
    link_gbps: float
    levels: dict[float, list[tuple[float, Array]]] = field(default_factory=dict)

    @property
    def job(self) -> ResolvedJob:
        """What the experiment says of it."""
        return self.spec.jobs[self.job_name]

    @property
    def model(self) -> str:
        """The model's name."""
        return self.job.profile.model

    @property
    def transport(self) -> str:
        """RDMA, or what stands for it, or TCP."""
        return self.job.transport.stands_for

    @property
    def name(self) -> str:
        """What reports call it."""
        return f"{self.model}, {self.traffic}, {self.transport}"

    @property
    def data_mb(self) -> float:
        """What a worker sends in an iteration, MB of 10^6 bytes (equation 3.1)."""
        return self.job.profile.comm_bytes / 1e6

    def fluid_s(self, load_gbps: float) -> float:
        """The fluid model's iteration time at a load of cross traffic; infinite where that leaves nothing."""
        limits = fluid_limits(_with_load(self.spec, load_gbps))[self.job_name]
        return limits.fair_ms / 1e3

    @property
    def sweep(self) -> Sweep:
        """By measured load; levels whose loads came out equal are one. Raises DegradationError."""
        loads = ((float(np.mean([load for load, _ in each])), each) for each in self.levels.values())
        together = groupby(sorted(loads, key=itemgetter(0)), key=itemgetter(0))
        levels = [Level(load, tuple(times for _, each in same for _, times in each)) for load, same in together]
        return Sweep(tuple(levels), self.link_gbps)


def is_sweep(run: Run) -> bool:
    """Whether the run's experiment is over loads, as numbers."""
    return over_loads(run.manifest["experiment"]["factors"])


def over_loads(factors: Mapping[str, Sequence[Any]]) -> bool:
    """Whether one of an experiment's factors is the load, in numbers."""
    return not any(isinstance(level, str) for level in factors.get(LOAD, ["none"]))


def loaded_jobs(run: Run) -> list[LoadedJob]:
    """Every job of the run under each kind of cross traffic, in the experiment's order."""
    loads, times = wire_loads(run), _times_s(run)
    found: dict[tuple[str, str], LoadedJob] = {}
    for cell in experiment_of(run).cells:
        setting = {factor: level for factor, level in cell.levels.items() if factor != LOAD}
        for job in cell.spec.jobs:
            repetitions = times.get((frozenset(cell.levels.items()), job), [])
            if any(each.load_gbps for each in cell.spec.cross_traffic.values()):
                repetitions = [(trial, each) for trial, each in repetitions if trial in loads]
            if repetitions:
                new = LoadedJob(cell.variant, job, setting, cell.spec, _traffic(cell.spec), _link_gbps(cell.spec))
                loaded = found.setdefault((job, json.dumps(setting)), new)
                loaded.levels[float(cell.levels[LOAD])] = [(loads.get(trial, 0.0), each) for trial, each in repetitions]
                loaded.spec = max(loaded.spec, cell.spec, key=_load_gbps)
    return list(found.values())


def wire_loads(run: Run) -> dict[str, float]:
    """Payload of cross traffic in Gbit/s while the jobs ran, per trial, by its senders' interface counters.

    What a job's worker sent from the same host is taken off. Where the counters do not tell, what receivers took stands
    in; a trial of which neither is known is missing.
    """
    scale = run.manifest["testbed"]["scale"]
    totals: defaultdict[str, float] = defaultdict(float)
    for row in _windows(run):
        wire, packets = (_gained(row, name) for name in ("bytes", "packets"))
        sent_bytes = wire - HEADER_BYTES * scale * packets - row["job_bytes"]
        counted_gbps = sent_bytes * 8 / (row["end_ns"] - row["begin_ns"])
        totals[row["trial"]] += row["achieved_gbps"] if np.isnan(counted_gbps) else counted_gbps
    return {trial: total for trial, total in totals.items() if not np.isnan(total)}


def outcomes(run: Run) -> list[dict[str, Any]]:
    """What the generators said, a row a trial and cross traffic, and `wire_gbps`, that of all the trial's."""
    loads = wire_loads(run)
    rows = query(
        run,
        """
        select trial, levels, repetition, traffic, kind, asked_gbps, planned_gbps, planned_gbps_standard_error,
               offered_gbps, achieved_gbps, schedule_held, lagging_share, lateness_p99_us, unfinished_flows
        from cross_traffic order by levels, repetition
        """,
    )
    return [
        {**row, "levels": json.loads(row["levels"]), "wire_gbps": loads.get(row["trial"])} for row in rows.to_pylist()
    ]


def _windows(run: Run) -> list[dict[str, Any]]:
    """Per trial and sender of cross traffic: when its jobs ran, what workers on that host sent, and counters' samples.

    Those are the last one up to each end of that time and the first one from there on: at_ns, bytes and packets, named
    `begin_before_bytes` and so on. `fell` says that the counter was reset in between.
    """
    samples = ", ".join(
        f"{pick}({value}, at_ns) filter (at_ns {relation} {edge}_ns) as {edge}_{side}_{name}"
        for edge in ("begin", "end")
        for side, pick, relation in (("before", "arg_max", "<="), ("after", "arg_min", ">="))
        for name, value in (("ns", "at_ns"), ("bytes", "tx_bytes"), ("packets", "tx_packets"))
    )
    rows: list[dict[str, Any]] = query(
        run,
        f"""
        with ran as (select trial, min(start_ns) as begin_ns, max(comm_end_ns) as end_ns from iterations group by all),
             own as (select trial, host, sum(sent_bytes) as bytes from iterations group by trial, host),
             senders as (select trial, host, sum(achieved_gbps) as achieved_gbps from cross_traffic group by all),
             sent as (select trial, host, controller_ns as at_ns, tx_bytes, tx_packets,
                             tx_bytes < lag(tx_bytes) over (partition by trial, host order by controller_ns) as fell
                      from counters semi join senders using (trial, host))
        select trial, host, begin_ns, end_ns, coalesce(any_value(own.bytes), 0)::bigint as job_bytes,
               coalesce(any_value(achieved_gbps), 'nan'::double) as achieved_gbps,
               coalesce(bool_or(fell) filter (at_ns between begin_ns and end_ns), false) as fell, {samples}
        from senders join ran using (trial) left join own using (trial, host) left join sent using (trial, host)
        group by trial, host, begin_ns, end_ns order by trial, host
        """,  # noqa: S608
    ).to_pylist()
    return rows


def _gained(row: dict[str, Any], name: str) -> float:
    """What a counter gained between the ends of a window, linear between samples; nan where that is not known."""
    totals = []
    for edge in ("begin", "end"):
        before, after = row[f"{edge}_before_{name}"], row[f"{edge}_after_{name}"]
        if before is None or after is None or row["fell"]:
            return float("nan")
        begin_ns, end_ns = row[f"{edge}_before_ns"], row[f"{edge}_after_ns"]
        part = (row[f"{edge}_ns"] - begin_ns) / (end_ns - begin_ns) if end_ns > begin_ns else 0.0
        totals.append(before + part * (after - before))
    return float(totals[1] - totals[0])


def _times_s(run: Run) -> dict[tuple[frozenset[tuple[str, Any]], str], list[tuple[str, Array]]]:
    """By levels and job: each repetition's trial and iteration times in s."""
    found = defaultdict(list)
    keys = ["repetition", "trial", "levels", "job"]
    rows = iterations(run).group_by(keys, use_threads=False).aggregate([("iteration_ms", "list")])
    for row in rows.sort_by("repetition").to_pylist():
        levels = frozenset(json.loads(row["levels"]).items())
        found[levels, row["job"]].append((row["trial"], np.array(row["iteration_ms_list"]) / 1e3))
    return found


def _load_gbps(spec: TrialSpec) -> float:
    return sum(traffic.load_gbps for traffic in spec.cross_traffic.values())


def _with_load(spec: TrialSpec, load_gbps: float) -> TrialSpec:
    """The same with another load, in the same parts."""
    total = _load_gbps(spec)
    return spec.model_copy(
        update={
            "cross_traffic": {
                name: each.model_copy(update={"load_gbps": each.load_gbps / total * load_gbps if total else 0.0})
                for name, each in spec.cross_traffic.items()
            }
        }
    )


def _traffic(spec: TrialSpec) -> str:
    """The kind of its cross traffic."""
    return " and ".join(dict.fromkeys(each.kind for each in spec.cross_traffic.values())) or "none"


def _link_gbps(spec: TrialSpec) -> float:
    """What the bottleneck carries; the narrowest link where none is named."""
    links = spec.topology.links
    return min(link.payload_rate_gbps for link in [link for link in links if link.bottleneck] or links)
