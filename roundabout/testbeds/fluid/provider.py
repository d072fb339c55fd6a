# SPDX-License-Identifier: Apache-2.0
"""The testbed `fluid`: the flow-level model computes trials with the same tables as a measurement.

Jobs follow their profiles without jitter. crossgen draws the flows of cross traffic with the trial's seed. A trial
without random flows has the same result each time. Therefore it runs once and has no confidence interval.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import combinations
from pathlib import Path
from types import MappingProxyType
from typing import Any

from roundabout.core import paths
from roundabout.core.errors import RoundaboutError
from roundabout.models import fluid
from roundabout.models.fluid import ResidualCapacity, Schedule, fluid_jobs, residual_of_schedules
from roundabout.models.fluid.engine import LIBRARY
from roundabout.models.fluid.mltcp import factor_of
from roundabout.plan import PlannedTrial
from roundabout.runner import program_list
from roundabout.runner.fidelity import Fidelity
from roundabout.runner.hosts.host_group import FullScale, Scaling
from roundabout.runner.tables.trial_start import TrialStart
from roundabout.runner.testbed import (
    Check,
    Floats,
    Outcome,
    Replay,
    RunContext,
    TestbedProvider,
    refuse_spreading,
    refuse_switch_features,
)
from roundabout.runner.trial.load_files import CROSSGEN, LoadError
from roundabout.spec import Experiment, TrialSpec
from roundabout.spec.errors import list_choices
from roundabout.spec.nic_settings import find_nic_setting
from roundabout.spec.topology import Topology
from roundabout.spec.transports import Transport
from roundabout.store import Attempt, Identity
from roundabout.testbeds.fluid import tables
from roundabout.testbeds.fluid.engine_trial import ComputedTrial, compute_trial, replay_trial
from roundabout.testbeds.fluid.loads import PlannedLoad, plan_loads

FIDELITY = Fidelity(
    "computed",
    "computed: fluid model, fair but for MLTCP; nothing was measured",
    "Everything on this page was computed: jobs play their profiles, and links are shared like water, by weighted "
    "max-min fairness at every instant. Only the flows of cross traffic are drawn, by the seed and as generators would "
    "send them; without them each trial comes out the same every time, and there are no intervals. What this cannot "
    "show:",
    (
        "transports: every connection gets its fair share with any parameters, so `unfair` is the same as `fair`; only "
        "those of MLTCP get shares as their F says, at once, and all of them alike whatever they are based on",
        "packets: no headers, no queues but those of priorities, no marks, no losses; `queue`, `buffer` mean nothing",
        "jitter: phases last exactly as long as profiles say",
        "failing links: flows go on where they were, without timeouts; links that lose packets carry that much less",
        "rings: a worker sends on whatever it has received, so that flows inside an iteration are all alike",
        "cross traffic's congestion control: its flows come before all jobs, as fast as links carry; iperf is even",
    ),
)


class UnplayableError(RoundaboutError):
    """The flow-level model cannot play a trial."""


def create_provider(_where: Mapping[str, str]) -> "FluidProvider":
    """Return the provider of the flow-level model."""
    return FluidProvider()


class FluidProvider(TestbedProvider):
    """The provider of the flow-level model. It needs only crossgen, and changes nothing on this machine."""

    where: Mapping[str, str] = MappingProxyType({"testbed": "fluid"})
    computes = True
    can_replay = True

    def open_testbed(self, _topology: Topology, context: RunContext) -> "AbstractContextManager[FluidTestbed]":
        """Open the model, which accepts any topology."""
        return nullcontext(FluidTestbed(context))

    def check_trial(self, trial: TrialSpec, /) -> None:
        """Raise UsageError if the trial weighs priorities or gives NICs settings that flows without packets lack.

        Kinds of queues and buffers have no effect (FIDELITY).
        """
        refuse_spreading(trial, "flows here have no packets, gaps or queues by which switches could choose", ("spray",))
        refuse_switch_features(trial, ("dwrr",), "higher priorities come first, strictly")
        _check_events(trial)
        if refused := find_nic_setting(trial, {job.transport.name for job in trial.jobs.values()}):
            raise UnplayableError(refused, "play it with --testbed packets: here flows share links without packets")

    def find_warnings(self, experiment: Experiment, /) -> list[str]:
        """Return also a warning for jobs of MLTCP that nothing moves apart."""
        found = [text for cell in experiment.cells for text in _symmetric_starts(cell.spec)]
        return list(dict.fromkeys([*super().find_warnings(experiment), *found]))

    def open_replay(self, trial: PlannedTrial, _is_stopped: Callable[[], bool], /) -> Replay:
        """Return a function that computes variants of a trial flow by flow."""
        schedules = {name: load.schedule for name, load in plan_loads(trial, FullScale()).items()}

        def replay(spec: TrialSpec, stretches: Mapping[str, Sequence[float]], /) -> Mapping[str, Floats]:
            own = {name: each for name, each in schedules.items() if name in spec.cross_traffic}
            return replay_trial(spec, _residual(spec, own), stretches)

        return replay

    def checks(self) -> tuple[Check, ...]:
        """Return the check for crossgen, the program that draws flows."""
        built = (paths.ROOT / CROSSGEN).is_file()
        return (
            Check("fluid model", True, "needs neither root nor this machine for itself"),
            Check("crossgen", built, "built" if built else "not built", paths.BUILD),
        )

    def artifacts(self, _transports: Iterable[Transport], /) -> Mapping[str, str]:
        """Return the hashes of the model's files, its engine, and crossgen."""
        folders = {"fluid": Path(fluid.__file__).parent, "testbeds/fluid": Path(__file__).parent}
        files = {f"{name}/{path.name}": path for name, folder in folders.items() for path in folder.glob("*.py")}
        built = {name: paths.ROOT / name for name in (CROSSGEN, LIBRARY)}
        return program_list.hash_files({**{name: files[name] for name in sorted(files)}, **built})


def _check_events(trial: TrialSpec) -> None:
    """Raise UnplayableError for events beside what is computed before them."""
    if trial.events and trial.cross_traffic:
        found = f"events: found {len(trial.events)} beside cross_traffic, expected one of both"
        raise UnplayableError(
            f"{found}: what cross traffic leaves of links is computed before", "play it with --testbed packets"
        )
    if trial.events and trial.topology.spreads_packets and trial.topology.routing:
        found = f"events: found {len(trial.events)} with routing {trial.topology.routing.name}"
        raise UnplayableError(
            f"{found}, allowed is one path for each flow: shares of spread flows stay", "play it with --testbed packets"
        )


def _symmetric_starts(spec: TrialSpec) -> Iterator[str]:
    """Yield a warning for jobs of MLTCP that share a link and begin alike, so that their F is the same."""
    alike: dict[tuple[Any, ...], list[str]] = {}
    for name, job in spec.jobs.items() if spec.has_concurrent_jobs else ():
        if factor_of(job.transport):
            alike.setdefault((job.profile.name, str(job.transport), job.flows, job.begins_ms), []).append(name)
    for names in alike.values():
        if any(set(spec.hops(one)) & set(spec.hops(other)) for one, other in combinations(names, 2)):
            begins_ms, transport = spec.jobs[names[0]].begins_ms, spec.jobs[names[0]].transport.name
            yield (
                f"jobs {list_choices(names)}: found the same profile and start, {begins_ms:g} ms; without jitter, as "
                f"here, {transport} gives them the same F and never moves them apart; expected different "
                "start_offset_ms, or --testbed packets"
            )


class FluidTestbed(Scaling):
    """A Testbed that computes trials with the flow-level model."""

    kind = "fluid"
    scale = dilation = 1.0
    fidelity = FIDELITY

    def __init__(self, context: RunContext) -> None:
        self._context = context

    def identity(self) -> dict[str, Any]:
        """Return the model's identity. The artifacts identify its files."""
        return {"kind": self.kind}

    def facts(self) -> dict[str, Any]:
        """Return facts about the run's clock. There are no hosts."""
        return {"hosts": {}, "clocks": {}}

    def execute(self, trial: PlannedTrial, _attempt: Attempt, identity: Identity) -> Outcome:
        """Compute the trial. The outcome is invalid if cross traffic leaves a job too little capacity to end."""
        if any(trial.spec.queue_of_priority.values()) and trial.spec.cross_traffic:
            return Outcome({}, ["priorities beside cross traffic are for a lab: here that comes before all jobs"])
        start_ns = self._context.clock.now_ns()
        if not trial.spec.jobs:  # the simulation of a mix of jobs is its result
            return Outcome({}, record={"start_ns": start_ns})
        try:
            crossing = plan_loads(trial, self)
            played = _compute(trial, crossing)
        except LoadError as error:
            return Outcome({}, [error.message])
        for name, workers in played.iterations.items():
            for number, (start_ms, _, end_ms, *_) in enumerate(workers[0], start=1):
                self._context.observer.iteration(name, number, end_ms - start_ms)
        when = TrialStart(start_ns, self._context.clock.offset_ns)
        return Outcome(tables.build_tables(trial.spec, played, crossing, when, identity), record={"start_ns": start_ns})


def _compute(trial: PlannedTrial, crossing: Mapping[str, PlannedLoad]) -> ComputedTrial:
    """Compute the trial. Raises LoadError if cross traffic leaves a job too little capacity to end beside it."""
    schedules = {name: load.schedule for name, load in crossing.items()}
    played = compute_trial(trial.spec, _residual(trial.spec, schedules))
    if any(played.last_ms > schedule.ends_ms for schedule in schedules.values()):
        raise LoadError("cross traffic ended before the jobs did, to which it leaves next to nothing")
    return played


def _residual(spec: TrialSpec, schedules: Mapping[str, Schedule]) -> ResidualCapacity:
    """Return the residual capacity of a trial's links. Raises LoadError if cross traffic leaves a job nothing."""
    jobs, left = fluid_jobs(spec), residual_of_schedules(spec, schedules)
    starved = [name for name, job in jobs.items() if not all(left.bytes_per_ms[edge].any() for edge in job.edges)]
    if starved:
        raise LoadError(f"cross traffic leaves nothing to {', '.join(starved)}, which never ends")
    return left
