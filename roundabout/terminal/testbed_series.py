# SPDX-License-Identifier: Apache-2.0
"""The testbeds that an experiment runs on, one after the other: by default the packet-level model, then the lab."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from roundabout.core.errors import RoundaboutError, UsageError
from roundabout.runner.run import make_run_plan
from roundabout.runner.testbed import TestbedProvider
from roundabout.spec import Experiment
from roundabout.terminal.execution import LAB_FACTORS, provider_for_experiment
from roundabout.terminal.lines import format_duration, print_warning
from roundabout.testbeds import find_provider

PREDICTION, MEASUREMENT = "packets", "lab"
"""The default: a computed prediction, then a measurement."""


@dataclass(frozen=True)
class TestbedSeries:
    """The providers of testbeds in the order of their runs.

    `notes` say why a testbed of the default is left out. `lacks_root` is True if only root is missing for the lab.
    """

    providers: tuple[TestbedProvider, ...]
    notes: tuple[str, ...] = ()
    lacks_root: bool = False


def choose_series(
    experiment: Experiment,
    testbed: str | None,
    inventory: Path | None = None,
    *,
    executor: str | None = None,
    is_root: bool | None = None,
    **options: float | None,
) -> TestbedSeries:
    """Return the testbeds that the command line requests. `testbed` lists names, separated by commas.

    The default applies without names, and without an option of the lab or the rack: an inventory, an executor, a scale
    or a dilation. `is_root` says whether this process can make a lab; None: as the system reports.

    Raises UsageError for an unknown testbed, a strange option or a faulty list, and the error of `check_trial` if a
    testbed of a list cannot run the experiment.
    """
    is_root = os.geteuid() == 0 if is_root is None else is_root
    names = [each.strip() for each in (testbed or "").split(",")]
    if len(names) > 1:
        return TestbedSeries(_listed(experiment, names, inventory, options, is_root=is_root))
    if testbed or inventory or executor or any(options.get(name) for name in LAB_FACTORS):
        return TestbedSeries((provider_for_experiment(experiment, testbed, inventory, **options),))
    return _default(experiment, is_root=is_root, jobs=options.get("jobs"))


def print_warnings(experiment: Experiment, providers: Sequence[TestbedProvider]) -> None:
    """Print the warnings of all testbeds about an experiment on stderr, each once."""
    for text in dict.fromkeys(text for each in providers for text in each.find_warnings(experiment)):
        print_warning(text)


def _listed(
    experiment: Experiment,
    names: Sequence[str],
    inventory: Path | None,
    options: Mapping[str, float | None],
    *,
    is_root: bool,
) -> tuple[TestbedProvider, ...]:
    """Return the providers of a list. Each gets the options that it has."""
    if len(set(names)) < len(names) or not all(names):
        raise UsageError(f"--testbed: found '{','.join(names)}', expected names of testbeds, each once")
    requested = {name: str(value) for name, value in {"inventory": inventory, **options}.items() if value is not None}
    known = {name: find_provider({**requested, "testbed": name}).where.keys() for name in names}
    if strange := requested.keys() - {option for own in known.values() for option in own}:
        raise UsageError(f"found --{min(strange)}, expected none: none of {', '.join(names)} has this option")
    providers = tuple(
        provider_for_experiment(
            experiment,
            name,
            inventory if "inventory" in known[name] else None,
            **{option: value for option, value in options.items() if option in known[name]},
        )
        for name in names
    )
    for each in providers:
        each.check_experiment(experiment)
    needy = [str(each.where["testbed"]) for each in providers if each.takes_machine]
    if needy and not is_root:
        raise UsageError(
            f"--testbed: found {needy[0]}, which needs root, expected only testbeds that do not: this is no root",
            "run it with sudo, or leave that testbed out",
        )
    return providers


def _default(experiment: Experiment, *, is_root: bool, jobs: float | None) -> TestbedSeries:
    """Return the prediction and the measurement, or one of them with the reason why the other is left out."""
    prediction = provider_for_experiment(experiment, PREDICTION, None, jobs=jobs)
    measurement = provider_for_experiment(experiment, None, None)
    predicted_s, no_prediction = _expected_time(prediction, experiment)
    measured_s, no_measurement = _expected_time(measurement, experiment)
    if no_prediction:
        return TestbedSeries((measurement,), (f"{PREDICTION} left out: {no_prediction}",))
    if no_measurement:
        return TestbedSeries((prediction,), (f"{MEASUREMENT} left out: {no_measurement}",))
    if not is_root:
        return TestbedSeries((prediction,), lacks_root=True)
    if predicted_s > measured_s:
        takes = f"it would take about {format_duration(predicted_s)}, and {MEASUREMENT} {format_duration(measured_s)}"
        note = f"{PREDICTION} left out: {takes}; --testbed {PREDICTION},{MEASUREMENT} runs both"
        return TestbedSeries((measurement,), (note,))
    return TestbedSeries((prediction, measurement))


def _expected_time(provider: TestbedProvider, experiment: Experiment) -> tuple[float, str]:
    """Return how long a run is expected to take, s, or the reason why the provider's testbeds cannot run it."""
    try:
        provider.check_experiment(experiment)
        return make_run_plan(provider, experiment, testbed_identity={}, artefacts={}).expected_s, ""
    except RoundaboutError as error:
        return 0.0, error.message
