# SPDX-License-Identifier: Apache-2.0
"""A testbed that computes: the packet-level model makes trials into tables like a measurement's."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from pydantic_core import to_jsonable_python

from roundabout.core import paths
from roundabout.core.errors import RoundaboutError
from roundabout.models import packets
from roundabout.models.packets import NO_LOADS, PS_PER_MS, Fabric, UnsupportedError, play_trial
from roundabout.models.packets.engine import LIBRARY
from roundabout.models.packets.steady_state import refusal
from roundabout.plan import PlannedTrial
from roundabout.runner import program_list
from roundabout.runner.fidelity import Fidelity
from roundabout.runner.hosts.host_group import Scaling
from roundabout.runner.tables.trial_start import TrialStart
from roundabout.runner.testbed import Check, Floats, Outcome, Replay, RunContext, TestbedProvider, refuse_mixes
from roundabout.runner.trial.load_files import CROSSGEN, LoadError
from roundabout.spec.experiment import Experiment
from roundabout.spec.topology import Topology
from roundabout.spec.transports import Transport
from roundabout.spec.trial_spec import TrialSpec
from roundabout.store import Attempt, Identity
from roundabout.testbeds.packets import tables
from roundabout.testbeds.packets.ahead import TrialsAhead
from roundabout.testbeds.packets.expected_work import expected_packet_hops
from roundabout.testbeds.packets.loads import plan_loads
from roundabout.testbeds.packets.pfc_faults import pfc_faults
from roundabout.testbeds.packets.stretched_trial import stretch_computing
from roundabout.testbeds.packets.support import check_support, find_unreached_rates

PACKET_HOPS_PER_S = 7e6
"""Speed of the engine on each of several processors at once, in elapsed time, from which plans follow.

In processor time unfair-vgg19 has 12e6 (benchmarks/packet_engine.py) and websearch-bert, with TCP, 8e6. Processors that
share a core or have other work are slower.
"""

FIDELITY = Fidelity(
    "computed",
    "computed: packet by packet; nothing was measured",
    "Everything on this page was computed: jobs play their profiles, and every packet, queue, mark, CNP and pause of a "
    "RoCE network is an event at the papers' rates. Computing times and the gaps between packets vary by the trial's "
    "seed, which gives the same packets every time. What this cannot show:",
    (
        "NICs and switches as they are: what their makers do not document is a guess "
        "(docs/explanation/packet-level-model.md)",
        "transports without a form for hosts, such as BBR: they are refused",
        "cross traffic's hosts: flows start when they are due, and a receiver takes all that arrives",
        "shared buffers, where a topology has no `buffer`: PFC's thresholds are fixed, and each queue is by itself",
        "GPUs and trainers: a job is its profile, and its bytes come into being evenly",
    ),
)


class ReplayError(RoundaboutError):
    """Error for a replay that ends before its jobs do."""


def create_provider(where: Mapping[str, str]) -> "PacketsProvider":
    """Return the provider of the packet-level model, which uses `jobs` processors, or all."""
    jobs = where.get("jobs")
    return PacketsProvider(None if jobs is None else int(jobs))


class PacketsProvider(TestbedProvider):
    """The provider of the packet-level model, which needs only its engine and crossgen, and leaves nothing behind."""

    computes = True
    has_jitter = True
    can_replay = True

    def __init__(self, jobs: int | None = None) -> None:
        self.where = {"testbed": "packets"} | ({} if jobs is None else {"jobs": str(jobs)})
        self._fabric = Fabric()
        self._ahead = TrialsAhead(self._fabric, jobs)

    def open_testbed(self, _topology: Topology, context: RunContext) -> "AbstractContextManager[PacketsTestbed]":
        """Open the model, which suits any topology."""
        return nullcontext(PacketsTestbed(context, self._fabric, self._ahead))

    @property
    def processors(self) -> int:
        """Return the number of trials that are computed at once."""
        return self._ahead.processors

    def computing_s(self, trial: PlannedTrial, /) -> float:
        """Return the trial's packet-hops at the engine's usual speed."""
        return expected_packet_hops(trial) / PACKET_HOPS_PER_S

    def compute_ahead(self, trials: Sequence[PlannedTrial], /) -> AbstractContextManager[None]:
        """Compute trials on all processors before their turn comes."""
        return self._ahead.computing(trials)

    def open_replay(self, trial: PlannedTrial, is_stopped: Callable[[], bool], /) -> Replay:
        """Return a function that plays variants of a trial packet by packet, with the trial's seed.

        Stretches that the seed does not give are drawn anew with the same mean and standard deviation.
        """
        loads = plan_loads(trial).loads

        def replay(spec: TrialSpec, stretches: Mapping[str, Sequence[float]], /) -> Mapping[str, Floats]:
            kept = {name: each for name, each in loads.by_name.items() if name in spec.cross_traffic}
            own = replace(loads, by_name=kept) if kept else NO_LOADS
            stretched = stretch_computing(spec, stretches, trial.seed)
            played = play_trial(stretched, trial.seed, self._fabric, is_stopped=is_stopped, loads=own)
            if faults := pfc_faults(spec, played):
                raise ReplayError(faults[0])
            return {
                name: (each["end_ps"] - each["start_ps"]).max(axis=0) / PS_PER_MS
                for name, each in played.iterations.items()
            }

        return replay

    def check_trial(self, trial: TrialSpec, /) -> None:
        """Raise UnsupportedError if the model cannot play the trial."""
        refuse_mixes(trial)
        check_support(trial, self._fabric)

    def find_warnings(self, experiment: Experiment, /) -> list[str]:
        """Return also a warning for payload rates that RoCE does not reach."""
        found = [text for cell in experiment.cells for text in find_unreached_rates(cell.spec)]
        return list(dict.fromkeys([*super().find_warnings(experiment), *found]))

    def checks(self) -> tuple[Check, ...]:
        """Check for the engine, and for crossgen, which draws flows."""
        built = (paths.ROOT / LIBRARY).is_file()
        has_crossgen = (paths.ROOT / CROSSGEN).is_file()
        return (
            Check("packet-level model", built, "built" if built else "not built", paths.BUILD),
            Check("crossgen", has_crossgen, "built" if has_crossgen else "not built", paths.BUILD),
        )

    def artifacts(self, _transports: Iterable[Transport], /) -> Mapping[str, str]:
        """Return the hashes of the model's own files, its engine, and crossgen."""
        folders = {"packets": Path(packets.__file__).parent, "testbeds/packets": Path(__file__).parent}
        files = {f"{name}/{path.name}": path for name, folder in folders.items() for path in folder.glob("*.py")}
        built = {name: paths.ROOT / name for name in (CROSSGEN, LIBRARY)}
        return program_list.hash_files({**{name: files[name] for name in sorted(files)}, **built})


class PacketsTestbed(Scaling):
    """A Testbed that computes trials packet by packet."""

    kind = "packets"
    scale = dilation = 1.0
    fidelity = FIDELITY

    def __init__(self, context: RunContext, fabric: Fabric, ahead: TrialsAhead) -> None:
        self._context, self._fabric, self._ahead = context, fabric, ahead

    def identity(self) -> dict[str, Any]:
        """Return the model's identity: what no topology says. Its files are among the artifacts."""
        return {"kind": self.kind, "fabric": to_jsonable_python(asdict(self._fabric))}

    def facts(self) -> dict[str, Any]:
        """Return the run's clock; there are no hosts."""
        return {"hosts": {}, "clocks": {}}

    def execute(self, trial: PlannedTrial, _attempt: Attempt, identity: Identity) -> Outcome:
        """Compute the trial, or take what was computed ahead, and return its tables."""
        start_ns = self._context.clock.now_ns()
        try:
            planned = plan_loads(trial)
            played = self._ahead.play(trial)
        except (UnsupportedError, LoadError) as error:  # what a job takes from earlier trials is known only now
            return Outcome({}, [error.message])
        for name, load in planned.loads.by_name.items() if not played.deadlock else ():
            if played.traffic[name].last_ms > load.ends_ms:
                return Outcome({}, [f"cross traffic {name} ended before the jobs did: its load was sent"])
        for name, workers in played.iterations.items():
            for number, each in enumerate(workers[0], start=1):
                self._context.observer.iteration(name, number, float(each["end_ps"] - each["start_ps"]) / PS_PER_MS)
        when = TrialStart(start_ns, self._context.clock.offset_ns)
        record: dict[str, Any] = {"start_ns": start_ns, "packet_hops": played.packet_hops}
        if played.lost:
            record["lost_packets"] = dict(played.lost)
        if played.deadlock:
            record["deadlock"] = asdict(played.deadlock)
        if trial.spec.skip_within is not None:
            record["skipped"] = {"within": trial.spec.skip_within, "refused": refusal(trial.spec)}
            record["skipped"]["jobs"] = {name: asdict(each) for name, each in played.skipped.items()}
        built = tables.build_tables(trial.spec, played, planned, when, identity)
        return Outcome(built, pfc_faults(trial.spec, played), record)
