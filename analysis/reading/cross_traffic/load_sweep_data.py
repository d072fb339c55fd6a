# SPDX-License-Identifier: Apache-2.0
"""Jobs under cross traffic: each job's iteration times by the payload rate of cross traffic, as in Salamy's sweeps."""

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np

from analysis.reading.cached_run import cached_per_run
from analysis.reading.cells import CellId, cell_of_trial, experiment_of
from analysis.reading.data import iterations, query
from analysis.reading.fidelity import is_repeatable
from analysis.statistics.degradation.sweep import Level, Sweep
from analysis.statistics.intervals import Array
from roundabout.models.fluid import ITERATIONS, fluid_limits
from roundabout.spec import Experiment, ResolvedJob, TrialSpec
from roundabout.spec.frames import HEADER_BYTES
from roundabout.store import Run, Units

LOAD = "load_gbps"
"""The factor that changes the load, unless the experiment's study names another."""
NEAR_GBPS = 2.5
"""Largest distance, Gbit/s, between a load and the level that stands for it."""


@dataclass
class JobUnderLoad:
    """A job under one kind of cross traffic, level by level.

    `setting` holds the levels of the other factors. `levels` maps a requested load to one pair for each repetition: the
    sent load (payload, Gbit/s) and the iteration times, s. `cells` maps a requested load to the experiment's cell.
    `spec` is the trial's specification at the heaviest load. `is_repeatable` says that only cross traffic is random.
    """

    variant: str
    job_name: str
    setting: CellId
    spec: TrialSpec
    traffic: str
    link_gbps: float
    is_repeatable: bool = False
    levels: dict[float, list[tuple[float, Array]]] = field(default_factory=dict)
    cells: dict[float, CellId] = field(default_factory=dict)

    @property
    def job(self) -> ResolvedJob:
        """Return the job's specification."""
        return self.spec.jobs[self.job_name]

    @property
    def model(self) -> str:
        """Return the model's name."""
        return self.job.profile.model

    @property
    def transport(self) -> str:
        """Return the transport that the job's own stands for in the papers, such as RDMA or TCP."""
        return self.job.transport.stands_for

    @property
    def name(self) -> str:
        """Return the name in reports."""
        return f"{self.model}, {self.traffic}, {self.transport}"

    @property
    def id(self) -> tuple[CellId, str]:
        """Return what identifies the sweep within its run: the other factors' levels, and the job."""
        return self.setting, self.job_name

    @property
    def place(self) -> str:
        """Return the levels of all factors but the load."""
        return self.setting.name

    @property
    def data_mb(self) -> float:
        """Return the data that a worker sends in an iteration, MB of 10^6 bytes (equation 3.1)."""
        return self.job.profile.comm_bytes / 1e6

    def fluid_s(self, load_gbps: float, iterations: int = ITERATIONS) -> float:
        """Return the flow-level model's iteration time, s, at a load of cross traffic.

        The time is infinite if cross traffic leaves no capacity.
        """
        limits = fluid_limits(_with_load(self.spec, load_gbps), iterations)[self.job_name]
        return limits.fair_ms / 1e3

    def fluid_line(self, loads_gbps: Array) -> Array:
        """Return the flow-level model's iteration times, s, at many loads, for figures."""
        iterations = 2 if len(self.spec.jobs) == 1 else ITERATIONS
        return np.array([self.fluid_s(load, iterations) for load in loads_gbps])

    def times_s(self, load_gbps: float) -> Array:
        """Return the iteration times, s, at the level nearest to a load; empty if it is more than `NEAR_GBPS` away."""
        at = {float(np.mean([load for load, _ in each])): each for each in self.levels.values()}
        nearest = min(at, key=lambda load: abs(load - load_gbps), default=np.inf)
        if abs(nearest - load_gbps) > NEAR_GBPS:
            return np.empty(0)
        return np.concatenate([times for _, times in at[nearest]])

    @property
    def sweep(self) -> Sweep:
        """Return the sweep by measured load, with levels of equal loads merged.

        Raises DegradationError if the levels make no sweep.
        """
        loads = ((float(np.mean([load for load, _ in each])), each) for each in self.levels.values())
        together = groupby(sorted(loads, key=itemgetter(0)), key=itemgetter(0))
        levels = [Level(load, tuple(times for _, each in same for _, times in each)) for load, same in together]
        return Sweep(tuple(levels), self.link_gbps)


def load_factor(experiment: Experiment) -> str:
    """Return the name of the factor that changes the load."""
    return experiment.study.over or LOAD


def varies_load(experiment: Experiment) -> bool:
    """Return True if a factor changes the load: the factor that the study names, or one whose levels are loads."""
    over = load_factor(experiment)
    levels = experiment.factors.get(over, ())
    reported = over != LOAD or not any(isinstance(level, str) for level in levels)
    loads = {tuple(each.load_gbps for each in cell.spec.cross_traffic.values()) for cell in experiment.cells}
    return reported and len(levels) > 0 and len(loads - {()}) >= min(2, len(levels))


@cached_per_run
def jobs_under_load(run: Run) -> list[JobUnderLoad]:
    """Return every job of the run under each kind of cross traffic, in the experiment's order.

    The list is empty if the experiment does not vary the load.
    """
    experiment = experiment_of(run)
    over = load_factor(experiment)
    if not varies_load(experiment):
        return []
    loads, times = sent_loads(run), _times_s(run)
    found: dict[tuple[str, CellId], JobUnderLoad] = {}
    for cell in experiment.cells:
        cell_id = CellId(cell.levels)
        setting = cell_id.without_factor(over)
        # The factor `load_gbps` says the load; what another one's levels come to, their cross traffic does.
        asked_gbps = float(cell_id.levels[LOAD]) if over == LOAD else cell.spec.cross_traffic_gbps
        for job in cell.spec.jobs:
            repetitions = times.get((cell_id, job), [])
            if cell.spec.cross_traffic_gbps:
                repetitions = [(trial, each) for trial, each in repetitions if trial in loads]
            if repetitions:
                new = JobUnderLoad(
                    cell.variant, job, setting, cell.spec, _traffic(cell.spec),
                    cell.spec.topology.bottleneck.payload_rate_gbps, is_repeatable(run),
                )  # fmt: skip
                loaded = found.setdefault((job, setting), new)
                loaded.cells[asked_gbps] = cell_id
                loaded.levels[asked_gbps] = [(loads.get(trial, 0.0), each) for trial, each in repetitions]
                loaded.spec = max(loaded.spec, cell.spec, key=lambda spec: spec.cross_traffic_gbps)
    return list(found.values())


@cached_per_run
def sent_loads(run: Run) -> dict[str, float]:
    """Return by trial the payload rate, Gbit/s, of the cross traffic that was sent while jobs ran.

    The rate is counted at the senders' interfaces, less the job's bytes if a sender is a worker too. If a counter was
    reset or does not cover the whole time, the receivers' figure is used. Trials without either are left out.
    """
    scale = Units.from_manifest(run.manifest["testbed"]).bytes_scale
    totals: defaultdict[str, float] = defaultdict(float)
    for row in _windows(run):
        wire, packets = (_counter_rise(row, name) for name in ("bytes", "packets"))
        sent_bytes = wire - HEADER_BYTES * scale * packets - row["job_bytes"]
        counted_gbps = sent_bytes * 8 / (row["end_ns"] - row["begin_ns"])
        totals[row["trial"]] += row["achieved_gbps"] if np.isnan(counted_gbps) else counted_gbps
    return {trial: total for trial, total in totals.items() if not np.isnan(total)}


@dataclass(frozen=True)
class CrossTrafficOutcome:
    """One cross traffic in one trial, as its generator reported it.

    `payload_gbps` is the sent rate of all cross traffic of the trial. Loads are payload, Gbit/s. Figures that the
    generator did not report are None.
    """

    trial: str
    kind: str
    asked_gbps: float
    planned_gbps: float | None
    offered_gbps: float | None
    achieved_gbps: float | None
    payload_gbps: float | None
    schedule_held: bool | None
    lagging_share: float | None
    lateness_p99_us: float | None


def cross_traffic_outcomes(run: Run) -> list[CrossTrafficOutcome]:
    """Return the outcome of every cross traffic, by levels and repetition."""
    loads = sent_loads(run)
    rows = query(
        run,
        """
        select trial, kind, asked_gbps, planned_gbps, offered_gbps, achieved_gbps, schedule_held, lagging_share,
               lateness_p99_us
        from cross_traffic order by levels, repetition
        """,
    )
    return [CrossTrafficOutcome(**row, payload_gbps=loads.get(row["trial"])) for row in rows.to_pylist()]


def _windows(run: Run) -> list[dict[str, Any]]:
    """Return a row for each trial and sender of cross traffic.

    The time of the trial's jobs, and the sender's counters then.

    The time of the trial's jobs, and the sender's counters then.

    begin_ns, end_ns     from the first iteration's start to the last one's end
    job_bytes            what workers on that host sent for their jobs
    begin_before_bytes   its counter at the last sample before the jobs began; `begin_after_...` is the first one from
                         then on, `end_...` the same around their end; `..._ns` is when, `..._packets` counts packets
    fell                 whether the counter was reset while they ran
    achieved_gbps        what receivers took, of all its cross traffic; nan where they did not say
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


def _counter_rise(row: dict[str, Any], name: str) -> float:
    """Return the rise of a counter from begin_ns to end_ns, linear between samples; nan if it is not known."""
    totals = []
    for edge in ("begin", "end"):
        before, after = row[f"{edge}_before_{name}"], row[f"{edge}_after_{name}"]
        if before is None or after is None or row["fell"]:
            return float("nan")
        begin_ns, end_ns = row[f"{edge}_before_ns"], row[f"{edge}_after_ns"]
        part = (row[f"{edge}_ns"] - begin_ns) / (end_ns - begin_ns) if end_ns > begin_ns else 0.0
        totals.append(before + part * (after - before))
    return float(totals[1] - totals[0])


def _times_s(run: Run) -> dict[tuple[CellId, str], list[tuple[str, Array]]]:
    """Return each repetition's trial and iteration times in s, by cell and job."""
    found, of_trial = defaultdict(list), cell_of_trial(run)
    keys = ["repetition", "trial", "job"]
    rows = iterations(run).group_by(keys, use_threads=False).aggregate([("iteration_ms", "list")])
    for row in rows.sort_by("repetition").to_pylist():
        times_s = np.array(row["iteration_ms_list"]) / 1e3
        found[of_trial[row["trial"]], row["job"]].append((row["trial"], times_s))
    return found


def _with_load(spec: TrialSpec, load_gbps: float) -> TrialSpec:
    """Return the trial with another load, in the same parts."""
    total = spec.cross_traffic_gbps
    return spec.model_copy(
        update={
            "cross_traffic": {
                name: each.model_copy(update={"load_gbps": each.load_gbps / total * load_gbps if total else 0.0})
                for name, each in spec.cross_traffic.items()
            }
        }
    )


def _traffic(spec: TrialSpec) -> str:
    """Return the kind of its cross traffic."""
    return " and ".join(dict.fromkeys(each.kind for each in spec.cross_traffic.values())) or "none"
