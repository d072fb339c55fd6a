# SPDX-License-Identifier: Apache-2.0
"""The mean-field model of jobs that compute and communicate over one link under DCQCN, for many trials at once.

In each trial only one direction of the bottleneck is modeled, with a queue that marks; other links do not limit. A
job's flows are equal, so one flow stands for all. There is no jitter, so equal jobs stay together. MLTCP's F multiplies
a flow's increases as a function of the sent share of the iteration's bytes (mltcp.py).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from roundabout.core.errors import RoundaboutError
from roundabout.models.fluid.dcqcn import PACKET_BYTES, Array, FlowState, Reaction, advance, marking_probability
from roundabout.models.fluid.mltcp import Factor, base_of, factor_of
from roundabout.spec import Transport, TrialSpec
from roundabout.spec.nic_settings import find_nic_setting
from roundabout.spec.transports import Parameter

Which = npt.NDArray[np.bool_]

BYTES_PER_US_OF_MBPS = 0.125

STEP_US = 10.0
"""Time step, us. With steps of 4 us shares and times are the same within 1 % for gaps between CNPs of 50 us, and within
3 % for gaps of 4 us.
"""

FEEDBACK_US = 10.0
"""Delay from a mark to its CNP's arrival, us, for any queue length, because packets are marked as they leave the queue.
A guess for a few hops within a rack; CoNEXT'16 uses 4 and 85.
"""

SETTLED = 2e-4
"""Largest share by which two consecutive iterations may differ for a trial to end, because later ones would be equal.
"""


PROGRESS_STEPS = 2000
"""Number of time steps between two notifications of progress."""

ProgressCallback = Callable[[float], None]
"""Receives the finished share of the work, from 0 to 1."""


def ignore_progress(_part: float) -> None:
    """Ignore a notification of progress."""


class ScenarioError(RoundaboutError):
    """An error for a trial that the mean-field model does not cover."""


@dataclass(frozen=True)
class SharedLinkScenario:
    """The result of one trial's jobs, in the papers' time.

    `spans` has start, begin of communication and end of each job's iterations, ms, shape (iterations, 3). `first_gbps`
    is each job's rate on the link while all jobs first communicate together, None if they never do. `marks` counts each
    job's marked packets, and `queue_bytes` is the mean queue while any job communicates. If `settled`, all later
    iterations equal the last one.
    """

    spans: Mapping[str, Array]
    first_gbps: Mapping[str, float] | None
    marks: Mapping[str, float]
    queue_bytes: float
    settled: bool = False

    def iteration_ms(self, job: str) -> Array:
        """Return the times of a job's iterations, ms."""
        return self.spans[job][:, 2] - self.spans[job][:, 0]

    def settled_ms(self, job: str) -> float:
        """Return the time of a job's last iteration, ms, which the median of a long run approaches."""
        return float(self.iteration_ms(job)[-1])

    @property
    def share(self) -> float | None:
        """Return the first job's bandwidth over the second's while all jobs first communicate together, or None."""
        if self.first_gbps is None:
            return None
        one, other = list(self.first_gbps.values())[:2]
        return one / other


@dataclass(frozen=True)
class ScenarioJobs:
    """The jobs of all trials, in arrays of shape (jobs, trials), and their links and thresholds, of shape (trials,)."""

    compute_us: Array
    bytes: Array  # of each flow
    demand: Array
    flows: Array
    begins_us: Array
    capacity: Array
    kmin_bytes: Array
    kmax_bytes: Array
    pmax: Array
    reaction: Reaction
    factors: Mapping[Factor, Which]
    """Each F, with True for the jobs whose R_AI it multiplies."""
    hyper: Which
    """True for the jobs whose R_HAI is multiplied by F too."""

    def reaction_with_unsent(self, unsent: Array) -> Reaction:
        """Return the flows' parameters, after F, for these unsent bytes of the iteration; idle flows have none."""
        if not self.factors:
            return self.reaction
        ratio, factor = 1 - unsent / self.bytes, np.ones_like(unsent)
        for each, where in self.factors.items():
            factor[where] = each(ratio[where])
        hyper = np.where(self.hyper, factor, 1.0)
        return replace(self.reaction, R_AI=self.reaction.R_AI * factor, R_HAI=self.reaction.R_HAI * hyper)


def find_refusal(spec: TrialSpec) -> ScenarioError | None:
    """Return the reason why `compute_scenarios` would refuse a trial, or None."""
    try:
        scenario_jobs([spec])
    except ScenarioError as error:
        return error
    return None


def compute_scenarios(
    specs: Sequence[TrialSpec],
    iterations: int = 12,
    step_us: float = STEP_US,
    feedback_us: float = FEEDBACK_US,
    progress: ProgressCallback = ignore_progress,
) -> list[SharedLinkScenario]:
    """Compute trials of equally many jobs until every job has completed `iterations`, or iterations no longer change.

    All trials are computed at once, and take as long as the slowest. An iteration of 400 ms has 40,000 steps, each of
    some 0.1 ms of CPU, however few trials there are. `progress` is called repeatedly with the finished share. Raises
    ScenarioError if a trial's jobs do not first compute and then send, over DCQCN, on the bottleneck, or if there are
    no marking thresholds.
    """
    names = [list(spec.jobs) for spec in specs]
    if len({len(each) for each in names}) > 1:
        raise ScenarioError(
            f"found trials of {', '.join(map(str, sorted({*map(len, names)})))} jobs, expected one number"
        )
    play = MeanFieldIntegration(scenario_jobs(specs), iterations, step_us, max(round(feedback_us / step_us), 1))
    while not play.is_over:
        play.step()
        if play.steps % PROGRESS_STEPS == 0:
            progress(play.part_done)
    return [play.scenario(place, each) for place, each in enumerate(names)]


class MeanFieldIntegration:
    """The integration of all trials over time steps."""

    def __init__(self, jobs: ScenarioJobs, iterations: int, step_us: float, lag: int) -> None:
        """Start with idle jobs. A step lasts `step_us`, and CNPs arrive `lag` steps after their marks."""
        self.jobs, self.us, shape = jobs, step_us, jobs.bytes.shape
        self.flow = FlowState.start(jobs.reaction)
        self.now = np.zeros(shape[1])
        self.queue = np.zeros(shape[1])
        self.seen = np.zeros((lag, shape[1]))  # what was marked, until its CNPs come
        self.steps = 0
        self.until = jobs.begins_us + jobs.compute_us  # when computing ends
        self.sending = np.zeros(shape, bool)
        self.unborn = np.zeros(shape)
        self.waiting = np.zeros(shape)
        self.done = np.zeros(shape, int)
        self.spans = np.full((*shape, iterations, 3), np.nan)
        self.spans[:, :, 0, 0] = jobs.begins_us
        self.first = np.zeros(shape)
        self.first_us = np.zeros(shape[1])
        self.met = np.zeros(shape[1], bool)  # and parted
        self.settled = np.zeros(shape[1], bool)
        self.marks = np.zeros(shape)
        self.queued = np.zeros(shape[1])
        self.queued_us = np.zeros(shape[1])

    @property
    def unsent(self) -> Array:
        """Return the unsent bytes of each flow in its present phase."""
        return self.unborn + self.waiting

    @property
    def is_over(self) -> bool:
        """Return True if no trial is left to compute."""
        return bool(self.finished_trials.all())

    @property
    def finished_trials(self) -> Which:
        """Return True for each trial that has all of its iterations, or has settled."""
        complete: Which = (self.done >= self.spans.shape[2]).all(axis=0)
        return complete | self.settled

    @property
    def part_done(self) -> float:
        """Return the finished share of the slowest trial's iterations, from 0 to 1."""
        parts = np.minimum(self.done / self.spans.shape[2], 1.0).mean(axis=0)
        return float(np.where(self.finished_trials, 1.0, parts).min())

    def step(self) -> None:
        """Advance by one step, or, without congestion, until the next change of any job."""
        jobs = self.jobs
        self._begin()
        R_C = self.flow.R_C  # noqa: N806 - the papers' name
        wanted = np.where(self.waiting > 0, R_C, np.minimum(R_C, jobs.demand)) * self.sending
        us = self._step_length(wanted)
        born = np.minimum(jobs.demand * us * self.sending, self.unborn)
        sent = np.minimum(wanted * us, self.waiting + born)
        rate = sent / us
        p = marking_probability(self.queue, jobs.kmin_bytes, jobs.kmax_bytes, jobs.pmax)
        slot = self.steps % len(self.seen)
        advance(self.flow, jobs.reaction_with_unsent(self.unsent), rate, self.seen[slot], us)
        self.seen[slot] = p
        self.unborn -= born
        self.waiting += born - sent
        sent *= jobs.flows
        self._count(sent, p, us)
        self.queue = np.maximum(self.queue + sent.sum(axis=0) - jobs.capacity * us, 0.0)
        self.now += us
        self.steps += 1
        self._end()

    def _step_length(self, wanted: Array) -> Array:
        """Return how long rates stay constant; a step while marks are under way, or while rates may rise."""
        jobs = self.jobs
        rising = (jobs.reaction.R_max > self.flow.R_C) & (~self.sending | (self.waiting > 0) | (wanted < jobs.demand))
        busy = (self.queue > 0) | (self.seen > 0).any(axis=0) | rising.any(axis=0)
        busy |= (wanted * jobs.flows).sum(axis=0) > jobs.capacity
        if busy.all():
            return np.full(busy.shape, self.us)
        drained = self.waiting / np.maximum(wanted - np.where(self.unborn > 0, jobs.demand, 0.0), 1e-9)
        sending = np.where(self.waiting > 0, drained, self.unborn / jobs.demand)
        sending = np.where(
            (self.waiting > 0) & (self.unborn > 0), np.minimum(sending, self.unborn / jobs.demand), sending
        )
        changes = np.where(self.sending, sending, self.until - self.now).min(axis=0)
        return np.where(busy, self.us, np.maximum(changes, self.us))

    def _begin(self) -> None:
        begin = ~self.sending & (self.now >= self.until - 1e-6)
        if not begin.any():
            return
        jobs = self.jobs
        self.sending |= begin
        self.unborn = np.where(begin, jobs.bytes, self.unborn)
        self._note(begin, 1)

    def _end(self) -> None:
        end = self.sending & (self.unborn <= 1e-6) & (self.waiting <= 1e-6)
        if not end.any():
            return
        self.met |= end.any(axis=0) & (self.first_us > 0)
        self.sending &= ~end
        self.unborn[end] = self.waiting[end] = 0.0
        self._note(end, 2)
        self.done += end
        self.until = np.where(end, self.now + self.jobs.compute_us, self.until)
        self._note(end, 0)
        for trial in np.nonzero(end.any(axis=0) & ~self.settled)[0].tolist():
            self.settled[trial] = all(map(_has_settled, self._iterations(trial)))

    def _iterations(self, trial: int) -> list[Array]:
        """Return the finished iterations of a trial's jobs."""
        return [spans[~np.isnan(spans[:, 2])] for spans in self.spans[:, trial]]

    def _note(self, which: Which, moment: int) -> None:
        for job, trial in zip(*np.nonzero(which & (self.done < self.spans.shape[2])), strict=True):
            self.spans[job, trial, self.done[job, trial], moment] = self.now[trial]

    def _count(self, sent: Array, p: Array, us: Array) -> None:
        live = ~self.finished_trials
        self.marks += sent * p * live
        some = self.sending.any(axis=0) * us * live
        self.queued += some * self.queue
        self.queued_us += some
        if not self.met.all():
            overlapping = self.sending.all(axis=0) & ~self.met
            self.first += sent * overlapping
            self.first_us += us * overlapping

    def scenario(self, trial: int, names: Sequence[str]) -> SharedLinkScenario:
        """Return the result of one trial."""
        first = None
        if len(names) > 1 and self.first_us[trial] > 0:
            gbps = self.first[:, trial] / self.first_us[trial] * 8e-3
            first = dict(zip(names, gbps.tolist(), strict=True))
        return SharedLinkScenario(
            spans={name: each / 1e3 for name, each in zip(names, self._iterations(trial), strict=True)},
            first_gbps=first,
            marks=dict(zip(names, (self.marks[:, trial] / PACKET_BYTES).tolist(), strict=True)),
            queue_bytes=float(self.queued[trial] / self.queued_us[trial]),
            settled=bool(self.settled[trial]),
        )


def _has_settled(spans: Array) -> bool:
    times = spans[-2:, 2] - spans[-2:, 0]
    return len(spans) > 2 and abs(times[1] / times[0] - 1) < SETTLED


def scenario_jobs(specs: Sequence[TrialSpec]) -> ScenarioJobs:
    """Return the jobs and links of trials as arrays, in us, bytes and bytes/us.

    Raises ScenarioError if the model does not cover a trial.
    """
    for spec in specs:
        if refused := find_nic_setting(spec):
            raise ScenarioError(refused)
    described = [[_job(spec, name) for name in spec.jobs] for spec in specs]
    links = [_link(spec) for spec in specs]

    def of_jobs(name: str) -> Array:
        return np.array([[job[name] for job in jobs] for jobs in described], float).T

    def of_links(name: str) -> Array:
        return np.array([link[name] for link in links], float)

    reaction = Reaction(**{name: of_jobs(name) for name in Reaction.__dataclass_fields__})
    transports = np.array([[job.transport for job in spec.jobs.values()] for spec in specs], object).T
    factor = np.vectorize(factor_of, [object])(transports)
    factors = {each: factor == each for each in set(factor.flat) - {None}}
    hyper = np.vectorize(_scaled_increases, [object])(transports) == "increase"
    both = {name: of_jobs(name) for name in ("compute_us", "bytes", "demand", "flows", "begins_us")}
    link = {name: of_links(name) for name in links[0]}
    return ScenarioJobs(**both, **link, reaction=reaction, factors=factors, hyper=hyper)


def _link(spec: TrialSpec) -> dict[str, float]:
    requested = {job.transport.thresholds for job in spec.jobs.values()}
    ecn = next(iter(requested)) if len(requested) == 1 else None
    if ecn is None:
        raise ScenarioError("found no thresholds, or several, expected one `set` or `ecn` of all jobs' transports")
    return {
        "capacity": spec.topology.bottleneck.payload_rate_gbps * 1000 * BYTES_PER_US_OF_MBPS,
        "kmin_bytes": ecn.Kmin_bytes,
        "kmax_bytes": ecn.Kmax_bytes,
        "pmax": ecn.Pmax,
    }


def _job(spec: TrialSpec, name: str) -> dict[str, float]:
    job, link = spec.jobs[name], spec.topology.bottleneck
    *computing, sending = job.profile.phases
    crossed = [size for hop, size in spec.bytes_by_hop(name, sending).items() if hop.link == link]
    if any(phase.bytes for phase in computing) or not crossed or sending.alone_ms is None:
        raise ScenarioError(f"job {name}: expected phases that compute and one that then sends across {link.name}")
    size = max(crossed) / job.flows
    return {
        "compute_us": sum(phase.compute_ms or 0.0 for phase in computing) * 1e3,
        "bytes": size,
        "demand": size / (sending.alone_ms * 1e3),
        "flows": job.flows,
        "begins_us": job.begins_ms * 1e3,
        **_reaction(spec, name),
    }


def _reaction(spec: TrialSpec, name: str) -> dict[str, float]:
    """Return a job's parameters, converted to payload.

    A NIC at the line rate sends the payload that its link carries.
    """
    transport = spec.jobs[name].transport
    if spec.queue_of_priority.get(spec.jobs[name].priority or 0):
        raise ScenarioError(f"job {name}: found a queue of its own by its priority, expected one queue for all")
    if base_of(transport) != "dcqcn" or transport.declaration is None:
        raise ScenarioError(f"job {name}: found transport {transport.name}, expected dcqcn, or MLTCP over it")
    if _scaled_increases(transport) == "decrease":
        raise ScenarioError(f"job {name}: found an F that acts on the decrease, expected one on the increase")
    hosts = spec.jobs[name].hosts
    carried = min(link.payload_rate_gbps for link in spec.topology.links if {*link.ends} & {*hosts}) * 1000
    numbers = (each for each in transport.declaration.parameters if not each.names)  # as DCQCN's all are
    values = {each.name: float(transport.requested.get(each.name, _default(each, transport))) for each in numbers}
    values["R_max_mbps"] = min(values["R_max_mbps"], carried)
    if values["rate_on_first_cnp_mbps"]:
        raise ScenarioError(f"job {name}: found rate_on_first_cnp_mbps, expected 0: cuts from the rate as it is")
    rates = {name.removesuffix("_mbps") for name in values if name.endswith("_mbps")}
    return {
        each: values[f"{each}_mbps"] * BYTES_PER_US_OF_MBPS if each in rates else values[each]
        for each in Reaction.__dataclass_fields__
    }


def _scaled_increases(transport: Transport) -> Any:
    """Return the increases that MLTCP scales: all, or (adaptive unfairness) additive ones only."""
    return transport.requested.get("acts_on", "increase")


def _default(parameter: Parameter, transport: Transport) -> float:
    return np.inf if parameter.chosen_by == "line_rate" else float(transport.fallback(parameter))
