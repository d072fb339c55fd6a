# SPDX-License-Identifier: Apache-2.0
"""The delay of a trial's jobs, taken apart: causes are removed one after the other, and the trial is played again."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from analysis.attribution.counterfactuals import (
    Cause,
    Computing,
    Counterfactual,
    Play,
    over_all_paths,
    with_fair_shares,
    without_agents,
    without_events,
    without_traffic,
)
from analysis.attribution.links import link_uses, meeting_groups, meeting_link
from analysis.statistics.shapley import shapley_values
from roundabout.core.errors import RoundaboutError
from roundabout.spec import TrialSpec

Stretch = tuple[float, ...]

OWN_PLAYERS: Mapping[str, Cause] = {"slowest worker": "slowest worker", "computing time": "computing time"}
"""The players that a job itself has. No job has such a name, because names have no spaces."""


class AttributionError(RoundaboutError):
    """Error for a run whose delays cannot be attributed."""


class Source(NamedTuple):
    """A cause of delay: its kind, the job, cross traffic or transport that it is, and the link where it acts.

    `beside` is the other job or cross traffic beside which a transport acts, if its part is divided.
    """

    cause: Cause
    name: str = ""
    link: str | None = None
    beside: str = ""


@dataclass(frozen=True)
class MeasuredTrial:
    """A measured trial: the mean iteration time of each job, ms, and the stretches of its computing times."""

    spec: TrialSpec
    seed: int
    mean_ms: Mapping[str, float]
    computing: Computing


@dataclass(frozen=True)
class Models:
    """The models that play a trial again.

    `replay` stands for the testbed; `is_own` is True if the trial's own times came from the same version of it.
    `share` is the flow-level model. With `divides_transport`, the part of the transport is divided among other jobs
    and cross traffic, too.
    """

    replay: Play
    share: Play
    is_own: bool = False
    divides_transport: bool = False


def decompose(
    trial: MeasuredTrial, models: Models, advance: Callable[[], None] = lambda: None
) -> dict[str, dict[Source, float]]:
    """Return the parts of each measured job's delay against its profile, ms an iteration, by their source.

    Parts sum to the measured mean iteration time less the profile's. Causes are removed one after the other, each in
    addition to those before, and a part is the time that the removal saves: link events, the transport (the trial is
    played at flow level with fair shares), colliding paths, and time-shift agents. The rest is divided by Shapley
    values among other jobs, cross traffic, the job's slowest worker, and its computing times that differ from the
    profile's. `advance` is called once before the first job's parts are complete, and once after each job's. What a
    transport does beside other jobs is a part for each of them with `divides_transport` of the models.

    Raises RoundaboutError if a model cannot play the trial, and AttributionError if a job ends no iteration in it.
    """
    parts: dict[str, dict[Source, float]] = {job: {} for job in trial.mean_ms}
    now = Counterfactual(trial.spec, trial.computing.slowest, models.replay)
    times = trial.mean_ms if models.is_own else _play(now)
    for cause, then in _removals(now, models.share):
        if then == now:
            continue
        after = _play(then)
        divided = _SharingGame(now, then) if cause == "transport" and models.divides_transport else None
        for job, own in parts.items():
            source = _source(cause, job, trial.spec)
            own.update(_divide(divided, source, job, trial.seed) if divided else {source: times[job] - after[job]})
        now, times = then, after
    advance()
    game = _SharingGame(now, computing=trial.computing)
    for job, own in parts.items():
        for name, link, part in game.divide(job, trial.seed):
            own[_player_source(name, link, trial.spec)] = part
        own[Source("own links")] = game.alone_ms(job) - trial.spec.jobs[job].profile.alone_ms
        whole = trial.mean_ms[job] - trial.spec.jobs[job].profile.alone_ms
        own[Source("unexplained")] = whole - sum(own.values())
        advance()
    return parts


def _removals(now: Counterfactual, share: Play) -> Iterator[tuple[Cause, Counterfactual]]:
    """Yield causes in their order, each with the trial from which it and those before are removed."""
    now = now._replace(spec=without_events(now.spec))
    yield "link events", now
    now = now._replace(spec=with_fair_shares(now.spec), play=share)
    yield "transport", now
    now = now._replace(spec=over_all_paths(now.spec))
    yield "colliding paths", now
    yield "time-shift agent", now._replace(spec=without_agents(now.spec))


def _divide(game: "_SharingGame", source: Source, job: str, seed: int) -> dict[Source, float]:
    """Return the part of a source that a job has alone, and those that it has beside others, ms."""
    beside = {source._replace(link=link, beside=name): part for name, link, part in game.divide(job, seed)}
    return {source: game.alone_ms(job), **beside}


def _source(cause: Cause, job: str, spec: TrialSpec) -> Source:
    if cause == "transport":
        return Source(cause, spec.jobs[job].transport.name)
    if cause == "link events":
        links = dict.fromkeys(event.link for event in spec.events)
        return Source(cause, link=", ".join(links))
    if cause == "colliding paths":
        return Source(cause, link=_busiest_link(job, spec))
    return Source(cause)


def _busiest_link(job: str, spec: TrialSpec) -> str | None:
    """Return the link of the job's paths that all jobs together use most, among those between switches."""
    uses = link_uses(spec)
    between = [hop for hop in uses[job] if {*hop.link.ends} <= {*spec.topology.switches}]
    total = {hop: sum(each.get(hop, 0.0) for each in uses.values()) for hop in between}
    busiest = max(total, key=total.__getitem__, default=None)
    return busiest and busiest.link.name


def _play(what: Counterfactual) -> dict[str, float]:
    """Return the mean time of each job's iterations, ms. Raises AttributionError if a job ends none."""
    found = what.play(what.spec, what.stretches)
    idle = [job for job, times in found.items() if not len(times)]
    if idle:
        raise AttributionError(
            f"jobs.{idle[0]}: found no iteration that ends in a replay, expected one at least",
            "explain a run with later `departs_ms`",
        )
    return {job: float(np.mean(times)) for job, times in found.items()}


def _player_source(name: str, link: str | None, spec: TrialSpec) -> Source:
    if name in OWN_PLAYERS:
        return Source(OWN_PLAYERS[name])
    return Source("job" if name in spec.jobs else "cross traffic", name, link)


class _SharingGame:
    """The game of all that makes the iterations of a job longer: jobs and cross traffic that share links with it.

    The value for a job is its mean iteration time, ms. With `less`, it is the mean less that of the other
    counterfactual. With `computing`, the slowest worker and the computing time of the job are players, too.
    """

    def __init__(
        self, trial: Counterfactual, less: Counterfactual | None = None, computing: Computing | None = None
    ) -> None:
        self._trial, self._less, self._computing = trial, less, computing
        self._uses = link_uses(trial.spec)
        self._groups = meeting_groups(trial.spec, self._uses)
        self._played: dict[tuple[frozenset[str], str, Stretch], dict[str, float]] = {}

    def divide(self, job: str, seed: int) -> Iterator[tuple[str, str | None, float]]:
        """Yield each player that meets the job, also by way of others, the link, and its part of the value, ms."""
        group = next(each for each in self._groups if job in each)
        order = (*self._trial.spec.jobs, *self._trial.spec.cross_traffic)
        meeting = [name for name in order if name in group and name != job]
        players = [*meeting, *self._own_players(job)]
        for name, part in shapley_values(players, lambda present: self._value(job, present), seed).items():
            yield name, meeting_link(self._uses, job, [name]) if name in meeting else None, part

    def alone_ms(self, job: str) -> float:
        """Return the value without other players, ms."""
        return self._value(job, frozenset())

    def _own_players(self, job: str) -> list[str]:
        if not self._computing:
            return []
        slowest, mean = self._computing.slowest[job], self._computing.mean[job]
        return [
            *(["slowest worker"] if slowest != mean else []),
            *(["computing time"] if mean != (1.0,) else []),
        ]

    def _value(self, job: str, players: frozenset[str]) -> float:
        stretch = self._stretch(job, players)
        present = (players | {job}) - {*OWN_PLAYERS}
        is_measured = stretch == self._trial.stretches[job]
        key = (present, "" if is_measured else job, stretch if not is_measured else ())
        if key not in self._played:
            found = _play(self._present(self._trial, present, job, stretch))
            less = _play(self._present(self._less, present, job, stretch)) if self._less else dict.fromkeys(found, 0.0)
            self._played[key] = {name: found[name] - less[name] for name in found}
        return self._played[key][job]

    def _stretch(self, job: str, players: frozenset[str]) -> Stretch:
        """Return the factors of the job's computing times with these players alone."""
        if not self._computing:
            return self._trial.stretches[job]
        slowest, mean = self._computing.slowest[job], self._computing.mean[job]
        if "slowest worker" not in players:
            return mean if "computing time" in players else (1.0,)
        if "computing time" in players or mean == (1.0,):
            return slowest
        factors = np.broadcast_arrays(slowest, mean)
        return tuple((1 + factors[0] - factors[1]).tolist())

    @staticmethod
    def _present(trial: Counterfactual, names: frozenset[str], job: str, stretch: Stretch) -> Counterfactual:
        return trial._replace(spec=without_traffic(trial.spec, names), stretches={**trial.stretches, job: stretch})
