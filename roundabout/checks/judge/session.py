# SPDX-License-Identifier: Apache-2.0
"""The session of a judgement: measurements on this machine. Transports and the lab are removed at the end."""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from roundabout.checks.judge import programs
from roundabout.checks.judge.figures import LINK, PAIR, QUANTITIES, Figures, Scene
from roundabout.checks.judge.measurement import link, pair
from roundabout.checks.judge.measurement.iperf_flows import StuckError
from roundabout.checks.judge.measurement.link import SharedLink
from roundabout.core.errors import RoundaboutError
from roundabout.runner.machine.undo_journal import Journal
from roundabout.runner.run import Runner
from roundabout.spec.topology import Topology
from roundabout.spec.transports import Transport
from roundabout.spec.trial_spec import TrialSpec
from roundabout.testbeds.lab import Lab
from roundabout.testbeds.lab.provider import LabProvider

SECONDS = {"alone": 2, "cost": 2}
ROUNDS = 3


class RefusedError(RoundaboutError):
    """Error for a judged congestion control that the kernel rejects."""


Spread = dict[str, dict[str, tuple[float, float]]]
"""Lowest and highest value of all rounds, by contestant and quantity."""


@dataclass(frozen=True)
class Session:
    """A session that measures contestants. `contestants` has a trial for each, the judged one first."""

    runner: Runner
    provider: LabProvider
    contestants: Mapping[str, TrialSpec]
    notify: Callable[[str], None]

    @property
    def transports(self) -> dict[str, Transport]:
        """Return the contestants' transports, by name."""
        return {name: trial.transports[name] for name, trial in self.contestants.items()}

    def measure(self, scenes: Sequence[Scene], path: Path) -> tuple[dict[str, Figures], Spread]:
        """Measure all scenes except those of jobs. Return figures by contestant, and their spread.

        The journal records `path`, whose last part is the judgement's id. Raises RefusedError with the verifier's
        message, and RoundaboutError.
        """
        figures: dict[str, Figures] = {name: {} for name in self.contestants}
        spread: Spread = {name: {} for name in self.contestants}
        with self.runner.hold_machine("judge", path) as journal, self._load_programs(journal, path.name.lower()) as own:
            for scene in (each for each in scenes if each in PAIR):
                self.notify(f"{scene}: one flow, unshaped")
                for quantity, samples in self._measure_on_pair(scene, own).items():
                    for name, values in samples.items():
                        figures[name][quantity] = statistics.median(values) if values else None
                        if len(values) > 1:
                            spread[name][quantity] = (min(values), max(values))
            if wanted := [each for each in scenes if each in LINK]:
                for name, found in self._measure_on_link(wanted, journal, path.name.lower()):
                    figures[name] |= found
        return figures, spread

    @contextmanager
    def _load_programs(self, journal: Journal, owner: str) -> Iterator[dict[str, list[int]]]:
        """Load each contestant's programs for the context, and yield their ids."""
        own: dict[str, list[int]] = {}
        with ExitStack() as stack:
            for name, transport in self.transports.items():
                where = {"owner": owner, "where": dict(self.provider.where)}
                stack.enter_context(
                    journal.register_undo({"kind": "transport", "name": name, **where}, self.provider.undo)
                )
                before = programs.program_times_ns()
                try:
                    self.provider.load_transport(transport, owner)
                except RoundaboutError as error:
                    raise (error if own else RefusedError(error.message, error.hint)) from error
                own[name] = [each for each in programs.program_times_ns() if each not in before]
            yield own

    def _measure_on_pair(self, scene: Scene, own: Mapping[str, Sequence[int]]) -> dict[str, pair.Samples]:
        if scene == "alone":
            return {"gbps": pair.measure_throughput(self.transports, ROUNDS, SECONDS["alone"])}
        costs = pair.measure_cost(self.transports, ROUNDS, SECONDS["cost"])
        return {
            "program_ns": pair.measure_program_time(self.transports, own, SECONDS["cost"]),
            "cpu_us": {name: [each.per_ack for each in rounds] for name, rounds in costs.items()},
        }

    def _measure_on_link(self, scenes: Sequence[Scene], journal: Journal, owner: str) -> Iterator[tuple[str, Figures]]:
        topology = next(iter(self.contestants.values())).topology
        marking = [each for each in scenes if each in ("fairness", "marks")]
        losing = [each for each in scenes if each in ("loss", "incast")]
        for there, wanted, marks in ((topology, marking, True), (link.with_short_queues(topology), losing, False)):
            if wanted:
                yield from self._measure_in_lab(there, wanted, journal, owner, marks=marks)

    def _measure_in_lab(
        self, topology: Topology, scenes: Sequence[Scene], journal: Journal, owner: str, *, marks: bool
    ) -> Iterator[tuple[str, Figures]]:
        """Measure some scenes in one lab with queues that suit them."""
        entry = {"kind": "testbed", "name": owner, "where": dict(self.provider.where)}
        with journal.register_undo(entry, self.provider.undo):
            self.notify(f"{', '.join(scenes)}: building a lab whose queues {'mark' if marks else 'drop'}")
            shared = SharedLink(Lab.create(topology, owner))
            shared.set_marking(at_all=marks)
            for scene in scenes:
                for name, trial in self.contestants.items():
                    self.notify(f"{scene}: {name}")
                    shared.prepare(trial)
                    try:
                        yield name, link.MEASURED[scene](shared)
                    except StuckError as error:
                        self.notify(f"{scene}: {name}: {error.message}")
                        yield name, {each.name: None for each in QUANTITIES if each.scene == scene}
