# SPDX-License-Identifier: Apache-2.0
"""One attempt at a trial on hosts.

The steps: apply settings, start collectors, cross traffic and trainers, watch them, stop them, and read settings back.
"""

import math
import os
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from queue import Empty, SimpleQueue
from typing import Any

from roundabout.core.errors import RoundaboutError
from roundabout.plan import PlannedTrial, iteration_s
from roundabout.runner.hosts.clocks import CONTROLLER, Phase, RunClock, call_repeatedly
from roundabout.runner.hosts.connections import LostHostError
from roundabout.runner.hosts.deadlines import take_within, time_slices
from roundabout.runner.hosts.host_group import Host, HostGroup
from roundabout.runner.hosts.programs import Program
from roundabout.runner.hosts.slurm_allocation import OWN_ALLOCATION, Allocation
from roundabout.runner.observer import Observer
from roundabout.runner.session import host_settings
from roundabout.runner.session.host_session import HostSession
from roundabout.runner.tables.rows import RecordError, parse_event
from roundabout.runner.trial import captures, cross_traffic, nccl, trial_file
from roundabout.runner.trial.agreed_start import LateStartError, send_start
from roundabout.runner.trial.cross_traffic import CrossTrafficError, Generator
from roundabout.runner.trial.cross_traffic_tables import GeneratorOutput
from roundabout.runner.trial.jobs import Worker, slurm_hosts, trial_workers
from roundabout.runner.trial.link_events import LinkEventPlayer
from roundabout.runner.trial.live_traffic import TrafficMeter
from roundabout.runner.trial.measurement import Measurement, host_units
from roundabout.runner.trial.routes.route_readback import read_routes
from roundabout.runner.trial.sampler import COUNTERS_MS, Sampler, controller_sampler, host_sampler, sampling_quality
from roundabout.runner.trial.switch_queues import sample_switches
from roundabout.spec import TrialSpec
from roundabout.store import RAW, Attempt

READY_TIMEOUT_S = 25  # time limit of trainers to connect; they report a failure within 20 s
REFRESH_S = 0.25
SETTLE_S = 0.5  # wait in which a broken connection becomes visible
STALL_S, STALL_ITERATIONS = 10, 10  # a job has stalled after so long without news, and so many iteration times
RECORDING_TIMEOUT_S = 600  # time limit of a trainer to export its record: a guess, for some GB of JSON
END_TIMEOUT_S = 5.0  # time limit of a program to end

Arrived = SimpleQueue[tuple[Worker, str | None]]
Programs = dict[Worker, Program]
Documents = Mapping[str, dict[str, Any]]


class TrialFailedError(Exception):
    """Error that ends an attempt but not the run. The message is the reason."""


class SettingsError(TrialFailedError):
    """Error for settings of hosts or switches that differ from the experiment's."""


@dataclass(frozen=True)
class AttemptContext:
    """The objects that the steps of an attempt share."""

    session: HostSession
    trial: PlannedTrial
    clock: RunClock
    observer: Observer
    attempt: Attempt
    measured: Measurement
    allocation: Allocation

    def log(self, event: str, at_ns: int, **details: Any) -> None:
        """Append an event at `at_ns` of the run's clock to the attempt's events."""
        self.attempt.log(event, host_units(self.session.site, self.clock).to_paper_instant(at_ns), **details)


def execute_attempt(
    session: HostSession, trial: PlannedTrial, clock: RunClock, observer: Observer, attempt: Attempt
) -> Measurement:
    """Run the trial once and return its measurement.

    If the attempt ends early, the measurement has the data until then, and the cause is one of its invalid reasons.
    """
    shared = {host: session.connections[host] for host in slurm_hosts(trial)}
    allocation = Allocation(shared, f"roundabout-{session.owner}", os.environ.get(OWN_ALLOCATION))
    attempting = AttemptContext(session, trial, clock, observer, attempt, Measurement(), allocation)
    try:
        with allocation:
            _execute_steps(attempting)
    except (TrialFailedError, LateStartError, CrossTrafficError, RecordError, LostHostError) as error:
        attempting.measured.invalid_reasons.append(str(error))
        attempting.measured.lost_host = isinstance(error, LostHostError)
        attempting.measured.settings_differ = isinstance(error, SettingsError)
        if isinstance(error, LateStartError):
            attempting.measured.cpu_shortage.append(str(error))
        attempting.log("failed", clock.now_ns(), reason=str(error))
    _check_clocks(attempting)
    return attempting.measured


def _execute_steps(now: AttemptContext) -> None:
    if now.allocation.number:
        now.log("allocated", now.clock.now_ns(), job=now.allocation.number)
    documents = {host: now.session.site.settings_document(now.trial.spec, host) for host in now.session.site.hosts}
    now.session.site.prepare(now.trial.spec)
    now.measured.clock_log.add(CONTROLLER, now.clock.anchor)
    _read_clocks(now, "before")
    now.observer.phase("applying settings")
    _apply(now, documents)
    now.measured.routes = read_routes(now.session, now.trial)  # while no program sends
    now.observer.phase("starting programs")
    with ExitStack() as stack:
        stack.enter_context(call_repeatedly(lambda: _read_clocks(now, "during")))
        capture, folder = now.trial.spec.capture, now.attempt.path / RAW
        stack.enter_context(captures.capture_hosts(now.session, capture, folder, now.measured.captured))
        _start_samplers(now, stack)
        stack.enter_context(sample_switches(now.session.site.queue_readers(), now.measured.switch_queues))
        arrived: Arrived = SimpleQueue()
        programs = _start_workers(now, arrived, stack)
        generators = _start_cross_traffic(now, stack)
        try:
            _wait_until_ready(now, programs, arrived)
            _start_together(now, programs, generators)
            _play_link_events(now, stack)
            now.observer.phase("measuring")
            _watch(now, programs, arrived, generators, _meter(now))
        finally:
            now.measured.end_ns = now.clock.now_ns()
    now.observer.phase("reading settings back")
    _read_clocks(now, "after")
    _read_back(now, documents)


def _read_clocks(now: AttemptContext, phase: Phase) -> None:
    for host, reading in now.session.read_clocks(phase).items():
        now.measured.clock_log.add(host, reading)


def _check_clocks(now: AttemptContext) -> None:
    for step in now.measured.clock_log.steps():
        now.log("clock stepped", step.before_ns, **asdict(step))
        if step.clock == "monotonic":  # that of UTC moves nothing that was measured
            now.measured.invalid_reasons.append(str(step))


def _apply(now: AttemptContext, documents: Documents) -> None:
    answers = now.session.on_each_host(
        lambda host: host_settings.apply_settings(now.session, host, documents[host.name])
    )
    for host, (answer, counters) in answers.items():
        now.measured.settings[host] = {key: answer[key] for key in ("applied", "changed")}
        now.measured.counters_before[host] = counters
    if now.session.site.settings_state is None and (wrong := _list_differences(answers)):
        raise RoundaboutError(
            f"settings differ from the experiment's, and changing them needs root: {'; '.join(wrong)}",
            "an administrator sets them once (docs/how-to/rack.md, Without root), or the experiment names those found",
        )
    _refuse_differences("settings could not be applied", answers)
    now.log("applied", now.clock.now_ns())


def _read_back(now: AttemptContext, documents: Documents) -> None:
    answers = now.session.on_each_host(
        lambda host: host_settings.read_settings(now.session, host, documents[host.name])
    )
    for host, (answer, counters) in answers.items():
        now.measured.settings[host]["after"] = answer["found"]
        now.measured.counters_after[host] = counters
    _refuse_differences("settings drifted during the trial", answers)
    if drifted := now.session.site.read_back(now.trial.spec):
        raise SettingsError(f"switches drifted during the trial: {'; '.join(drifted)}")


def _refuse_differences(what: str, answers: Mapping[str, tuple[host_settings.Answer, Any]]) -> None:
    if wrong := _list_differences(answers):
        raise SettingsError(f"{what}: {'; '.join(wrong)}")


def _list_differences(answers: Mapping[str, tuple[host_settings.Answer, Any]]) -> list[str]:
    return [
        f"{host}: {host_settings.describe_differences(answer['differs'])}"
        for host, (answer, _) in answers.items()
        if answer["differs"]
    ]


def _start_samplers(now: AttemptContext, stack: ExitStack) -> None:
    """Start all collectors. Their output goes into the measurement."""
    measured, session = now.measured, now.session

    def on_host(host: Host) -> Sampler:
        period_ms = session.site.ms_on_host(COUNTERS_MS)
        argv = host_sampler(host, session.site.capabilities(), period_ms, cpu=session.sampler is None)
        return Sampler(session.connections[host.name], argv)

    samplers: list[Sampler] = []  # stopped from the first one on: Ctrl-C may come between two of them
    stack.callback(_check_samplers, now, samplers)
    stack.callback(lambda: _stop(now, [sampler.program for sampler in samplers]))
    if session.sampler:
        samplers.append(Sampler(session.controller, controller_sampler(session.sampler)))
        measured.controller_samples = samplers[-1].samples
    for argv in session.site.switch_samplers():
        samplers.append(Sampler(session.controller, argv))
        measured.switch_samples.append(samplers[-1].samples)
    of_hosts = session.on_each_host(on_host)
    samplers += of_hosts.values()
    measured.host_samples = {host: sampler.samples for host, sampler in of_hosts.items()}


def _check_samplers(now: AttemptContext, samplers: Sequence[Sampler]) -> None:
    """Mark the attempt invalid if samples are missing, because their absence must not look like idle links."""
    for sampler in samplers:
        program = sampler.program
        if program.status not in (0, None):
            now.measured.invalid_reasons.append(f"{sampler.name} ended: {program.describe_end()}")
        elif (kept := sampling_quality(sampler.samples)) and kept.lost_lines:
            lost = f"{sampler.name} lost {kept.lost_lines} lines of its record: its reader was too slow"
            now.measured.invalid_reasons.append(lost)
            now.measured.cpu_shortage.append(lost)


def _start_workers(now: AttemptContext, arrived: Arrived, stack: ExitStack) -> Programs:
    wanted, secret = trial_workers(now.trial, now.session.site), secrets.token_hex(16)

    def on_host(host: Host) -> Programs:
        here = [worker for worker in wanted if worker.host == host.name]
        return {worker: _start_worker(now, worker, arrived, secret) for worker in here}

    programs = {
        worker: program for each in now.session.on_each_host(on_host).values() for worker, program in each.items()
    }
    stack.callback(_check_nccl, now, programs)
    stack.callback(_stop, now, list(programs.values()))
    return programs


def _check_nccl(now: AttemptContext, programs: Programs) -> None:
    """Check for each worker that used NCCL that the settings NCCL reports match those requested."""
    for worker, program in programs.items():
        if worker.environment:
            found = nccl.parse_log(program.stderr)
            now.measured.nccl[str(worker)] = {"asked": dict(worker.environment), "used": asdict(found)}
            addresses = [nic.address for host in worker.nccl_hosts for nic in now.session.site.hosts[host].nics]
            if program.status == 0:  # what else ended it is the reason
                wrong = nccl.find_differences(worker.environment, addresses, found)
                now.measured.invalid_reasons += [f"{worker}: NCCL's {each}" for each in wrong]


def _start_worker(now: AttemptContext, worker: Worker, arrived: Arrived, secret: str) -> Program:
    name = f"{worker.job} rank {worker.rank}"
    reported = secret if worker.listens else None
    step = now.allocation.step(worker.host) if worker.scheduled else ()
    exports = nccl.command_prefix(worker.environment) if worker.environment else ()
    connection, argv = now.session.connections[worker.host], (*step, *worker.container, *exports, *worker.argv)
    return Program(name, connection, argv, lambda _, line: arrived.put((worker, line)), reported)


def _start_cross_traffic(now: AttemptContext, stack: ExitStack) -> list[Generator]:
    def stop(programs: Sequence[Program]) -> None:
        _stop(now, programs, cross_traffic.FLUSH_TIMEOUT_S)

    generators = cross_traffic.start_cross_traffic(now.session, now.trial, stack, stop)
    now.measured.loads = {each.name: GeneratorOutput(each.spec, each.sender.lines) for each in generators}
    return generators


def _stop(now: AttemptContext, programs: Sequence[Program], timeout_s: float = END_TIMEOUT_S) -> None:
    for program in programs:
        program.close_stdin()
    for program in programs:
        program.finish(timeout_s)
        if program.status not in (0, None):
            now.log("program", now.clock.now_ns(), host=program.host, name=program.name, ended=program.describe_end())


def _wait_until_ready(now: AttemptContext, programs: Programs, arrived: Arrived) -> None:
    waiting = set(programs)
    slices = time_slices(READY_TIMEOUT_S)
    while waiting:
        try:
            worker, line = take_within(arrived, slices)
        except Empty:
            names = ", ".join(sorted(f"{worker.job} on {worker.host}" for worker in waiting))
            raise TrialFailedError(f"trainers were not ready after {READY_TIMEOUT_S} s: {names}") from None
        if _take_event(now, programs, arrived, worker, line)["event"] == "ready":
            waiting.discard(worker)


def _start_together(now: AttemptContext, programs: Programs, generators: Sequence[Generator]) -> None:
    start_ns = send_start(now.session.site, now.clock, now.measured, programs.values(), generators)
    now.measured.start_ns = start_ns
    now.log("start", start_ns)


def _play_link_events(now: AttemptContext, stack: ExitStack) -> None:
    """Play the events of the trial's links until the stack is closed. Their faults make the attempt invalid."""
    if not now.trial.spec.events:
        return
    assert now.measured.start_ns is not None
    player = LinkEventPlayer(now.session.site, now.trial.spec, now.clock, now.log)

    def take() -> None:
        now.measured.lost_packets = player.lost
        now.measured.invalid_reasons += [*player.faults, *player.late]
        now.measured.cpu_shortage += player.late

    stack.callback(take)
    stack.enter_context(player.playing(now.measured.start_ns))


def _watch(
    now: AttemptContext,
    programs: Programs,
    arrived: Arrived,
    generators: Sequence[Generator],
    meter: TrafficMeter,
) -> None:
    """Follow the trainers until all are done.

    Raises TrialFailedError if one fails or all of a job are silent too long, and RoundaboutError if the hosts are no
    longer ours.
    """
    running = set(programs)
    silence = _Silence(_silence_timeout_s(now.trial.spec, now.session.site))
    refreshed_s, looked_s = -math.inf, time.monotonic()
    while running:
        now_s = time.monotonic()
        # At most the longest wait, because hosts continue while this process is stopped.
        silence.extend({worker.job for worker in running}, min(now_s - looked_s, REFRESH_S))
        looked_s = now_s
        if now_s - refreshed_s >= REFRESH_S:
            refreshed_s = now_s
            now.session.check_held()
            cross_traffic.check_generators(generators)
            now.observer.traffic(meter.links(), meter.cross_traffic())
        try:
            worker, line = arrived.get(timeout=REFRESH_S)
        except Empty:
            continue
        # A worker's failure after its job, such as the loss of a peer that has ended, changes no figure of the job.
        if worker not in running and (line is None or worker.job not in {each.job for each in running}):
            continue
        _show(now, worker, event := _take_event(now, programs, arrived, worker, line))
        silence.end(worker, event["event"])
        if event["event"] == "done":
            running.discard(worker)


class _Silence:
    """The duration in which all trainers of a job are silent, for each job.

    It may last longer while one of the job's trainers exports a record.
    """

    def __init__(self, timeout_s: float) -> None:
        self._silence_timeout_s = timeout_s
        self._lasted_s: dict[str, float] = {}
        self._recording: set[Worker] = set()

    def extend(self, jobs: Iterable[str], longer_s: float) -> None:
        """Extend the silence of these jobs. Raises TrialFailedError if one lasts too long."""
        for job in jobs:
            self._lasted_s[job] = lasted_s = self._lasted_s.get(job, 0.0) + longer_s
            recording = sorted(str(worker) for worker in self._recording if worker.job == job)
            if recording and lasted_s > RECORDING_TIMEOUT_S:
                raise TrialFailedError(
                    f"trainers did not say what they recorded within {RECORDING_TIMEOUT_S} s: {', '.join(recording)}"
                )
            if not recording and lasted_s > self._silence_timeout_s:
                raise TrialFailedError(
                    f"job {job}: no trainer finished an iteration for {self._silence_timeout_s:.0f} s"
                )

    def end(self, worker: Worker, event: str) -> None:
        """End the silence of a worker's job with an event of the worker."""
        self._lasted_s[worker.job] = 0.0
        if event == "recording":
            self._recording.add(worker)
        elif event in ("record", "done"):
            self._recording.discard(worker)


def _silence_timeout_s(spec: TrialSpec, site: HostGroup) -> float:
    """Return how long all trainers of a job may be silent. Nothing happens before a job begins."""
    slowest_ms = 1e3 * max(iteration_s(spec, name) for name in spec.jobs)
    begins_ms = max(job.begins_ms for job in spec.jobs.values())
    # A failed link stalls a job, whose retransmission timeouts may last as long again.
    begins_ms += 2 * max((event.at_ms for event in spec.events), default=0.0)
    startup_s = max(job.trainer.startup_limit_s for job in spec.jobs.values())
    return STALL_S + startup_s + site.ms_on_host(STALL_ITERATIONS * slowest_ms + begins_ms) / 1e3


def _take_event(
    now: AttemptContext, programs: Programs, arrived: Arrived, worker: Worker, line: str | None
) -> dict[str, Any]:
    """Take one line of a worker into the measurement.

    Raises TrialFailedError or LostHostError if it is the worker's end.
    """
    event = parse_event(line, str(worker)) if line is not None else {"event": "ended"}
    if event["event"] == "record":
        trial_file.store_record(now.attempt, worker, event)
    if event["event"] in ("record", "recording"):
        return event
    now.measured.events.append((worker, event))
    if event["event"] in ("error", "stopped", "ended"):
        _explain_end(now, programs, arrived)
        reason = event.get("message") or event.get("reason") or programs[worker].describe_end()
        raise TrialFailedError(f"{worker}: {reason}")
    return event


def _explain_end(now: AttemptContext, programs: Programs, arrived: Arrived) -> None:
    """Wait briefly for a connection to break, because the peers of a lost host report first.

    Raises LostHostError for a lost host, and TrialFailedError for a lost allocation.
    """
    deadline = time.monotonic() + SETTLE_S
    while (left_s := deadline - time.monotonic()) > 0:
        for worker, program in programs.items():
            if program.lost_connection:
                raise LostHostError(worker.host, "the connection broke during a trial")
        if now.allocation.loss_reason:
            raise TrialFailedError(now.allocation.loss_reason)
        with suppress(Empty):
            arrived.get(timeout=left_s)


def _show(now: AttemptContext, worker: Worker, event: dict[str, Any]) -> None:
    job = now.trial.spec.jobs[worker.job]
    if event["event"] == "iteration" and worker.rank == job.trainer.reporters(len(job.workers))[0]:
        lasted_ms = (event["comm_end_ns"] - event["start_ns"]) / 1e6 / now.session.site.dilation
        now.observer.iteration(worker.job, event["iteration"] + 1, lasted_ms)


def _meter(now: AttemptContext) -> TrafficMeter:
    return TrafficMeter(now.trial.spec, now.session.site, now.measured.switch_samples, now.measured.host_samples)
