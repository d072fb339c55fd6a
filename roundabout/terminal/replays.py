# SPDX-License-Identifier: Apache-2.0
"""The models that play the trials of a stored run, or the recorded jobs of a cluster, again."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from analysis.attribution.attribution import Attribution, attribute_delays, choose_trials
from analysis.attribution.decomposition import MeasuredTrial, Models
from analysis.attribution.recorded_trial import RecordSources, attribute_recorded_delays, read_recorded_trial
from analysis.reading.cached_run import CachedRun
from roundabout.core.errors import RoundaboutError, UsageError
from roundabout.plan import PlannedTrial
from roundabout.runner.testbed import TestbedProvider
from roundabout.spec import TrialSpec
from roundabout.store import Run
from roundabout.testbeds import find_provider, names

FLOW_LEVEL, PACKET_LEVEL = "fluid", "packets"


@dataclass(frozen=True)
class ReplayModels:
    """The models that play the trials of a run: one that stands for its testbed, and the flow-level model.

    `is_own` is True if this version of the first one computed the run. With `divides_transport`, the transport's part
    is divided among other jobs. `notes` say why another model is not used.
    """

    provider: TestbedProvider
    is_own: bool
    divides_transport: bool = False
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Return the name of the testbed whose model stands for the run's."""
        return self.provider.where["testbed"]

    def open(self, key: str, trial: MeasuredTrial, is_stopped: Callable[[], bool]) -> Models:
        """Return the models that play variants of a trial until `is_stopped`. Raises RoundaboutError."""
        planned = PlannedTrial(
            key=key,
            variant="",
            levels={},
            repetition=1,
            job=None,
            spec=trial.spec,
            seed=trial.seed,
            depends_on=(),
            expected_s=0.0,
        )
        share = find_provider({"testbed": FLOW_LEVEL}).open_replay(planned, is_stopped)
        is_flow_level = self.name == FLOW_LEVEL
        replay = share if is_flow_level else self.provider.open_replay(planned, is_stopped)
        return Models(replay, share, self.is_own, self.divides_transport)


def explain_run(  # noqa: PLR0913 - as on the command line
    run: Run,
    *,
    levels: Sequence[str] = (),
    model: str | None = None,
    repetitions: int | None = None,
    divides_transport: bool = False,
    processors: int | None = None,
    progress: Callable[[float], None] = lambda _: None,
    warn: Callable[[str], None] = lambda _: None,
) -> Attribution:
    """Return what delays the jobs of a run, by models that play its trials again.

    `levels`, `repetitions`, `processors` and `progress` are those of `choose_trials` and `attribute_delays`; `model` is
    the testbed whose model plays the trials, chosen by the run if None. With `divides_transport`, the transport's part
    is divided among other jobs, which plays all groups of jobs by that model. `warn` receives notes on the choice.

    Raises AttributionError, UsageError, StoreError, and the error of a model that cannot play a trial.
    """
    cached = CachedRun(run)
    chosen = choose_trials(cached, levels, repetitions)
    models = choose_models(cached, [trial.spec for trial in chosen.trials.values()], model)
    models = replace(models, divides_transport=divides_transport)
    for note in models.notes:
        warn(note)
    return attribute_delays(cached, chosen, models.open, models.name, processors, progress)


def explain_records(  # noqa: PLR0913 - as on the command line
    sources: RecordSources,
    *,
    model: str | None = None,
    divides_transport: bool = False,
    processors: int | None = None,
    progress: Callable[[float], None] = lambda _: None,
    warn: Callable[[str], None] = lambda _: None,
) -> Attribution:
    """Return what delays the jobs of a cluster's records, by models that play them again.

    `model` is the testbed whose model plays the jobs. If it is None, they are played packet by packet if their
    congestion control is given, else flow by flow. `divides_transport`, `processors` and `progress` are as in
    `explain_run`. `warn` receives notes on what records do not show.

    Raises UsageError, RecordError, SpecError, and the error of a model that cannot play the jobs.
    """
    recorded = read_recorded_trial(sources)
    for note in recorded.notes:
        warn(note)
    if model == PACKET_LEVEL and sources.transport is None:
        raise UsageError(
            f"--model {PACKET_LEVEL}: found no --transport, expected it", "records do not show the congestion control"
        )
    provider = _find_model(model or (PACKET_LEVEL if sources.transport else FLOW_LEVEL))
    provider.check_trial(recorded.trial.spec)
    models = ReplayModels(provider, is_own=False, divides_transport=divides_transport)
    return attribute_recorded_delays(
        recorded,
        sources.records.resolve().name,
        models.open,
        models.name,
        processors,
        progress,
        is_random=models.name != FLOW_LEVEL,
    )


def choose_models(run: Run, specs: Sequence[TrialSpec], requested: str | None = None) -> ReplayModels:
    """Return the models that play trials of a run with these `specs`.

    The model is the `requested` testbed's. By default it is that of the run's own testbed if its model computed the
    run, else the packet-level model if that can play all trials, else the flow-level model.

    Raises UsageError if the requested testbed has no model, and the error of its `check_trial` if it cannot play them.
    """
    own = _own_model(run)
    if wanted := requested or own:
        provider = _find_model(wanted)
        _check(provider, specs)
        is_own = provider.where["testbed"] == own and run.manifest.get("artefacts") == dict(provider.artifacts(()))
        return ReplayModels(provider, is_own)
    provider = find_provider({"testbed": PACKET_LEVEL})
    try:
        _check(provider, specs)
    except RoundaboutError as error:
        provider = find_provider({"testbed": FLOW_LEVEL})
        _check(provider, specs)
        note = f"trials are played flow by flow, because the packet-level model refuses them: {error.message}"
        return ReplayModels(provider, is_own=False, notes=(note,))
    return ReplayModels(provider, is_own=False)


def _find_model(name: str) -> TestbedProvider:
    """Return the testbed of this name. Raises UsageError if it has no model that can play variants of trials."""
    if name in names() and (provider := find_provider({"testbed": name})).can_replay:
        return provider
    raise UsageError(
        f"--model: found {name}, allowed are models: {PACKET_LEVEL} and {FLOW_LEVEL}",
        "leave the option out: a model is chosen",
    )


def _own_model(run: Run) -> str | None:
    """Return the testbed of a run if a model computed it and can play variants of trials, else None."""
    name: str | None = run.manifest.get("where", {}).get("testbed")
    computed = run.manifest["testbed"].get("fidelity", {}).get("nature") == "computed"
    return name if computed and name in names() and find_provider({"testbed": name}).can_replay else None


def _check(provider: TestbedProvider, specs: Sequence[TrialSpec]) -> None:
    for spec in specs:
        provider.check_trial(spec)
