# SPDX-License-Identifier: Apache-2.0
"""Experiments on training jobs that share a network.

    import roundabout

    experiment = roundabout.load_experiment("unfair-vgg19", set={"jobs.j1.transport.T_us": 90}, only=["unfair"])
    run = roundabout.run_experiment(experiment, testbed="fluid")
    run.table("iterations").to_pandas()     # Arrow, and what Arrow can be made into

`roundabout.api` has the rest; docs/how-to/experiments.md shows it at work.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roundabout.api import build_experiment, load_experiment, open_run, plan_experiment, query, run_experiment

__all__ = ["build_experiment", "load_experiment", "open_run", "plan_experiment", "query", "run_experiment"]


def __getattr__(name: str) -> Any:
    """One of these, imported at the first access: the programs below need none of them, and they take a second."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("roundabout.api"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
