# SPDX-License-Identifier: Apache-2.0
"""Schedulers, one file each, also from folders on ROUNDABOUT_PATH; its `scheduler(known, **options)` creates one.

roundabout.models.cluster.state defines the interface `Scheduler`, and `JobKnowledge`, which describes jobs before they
run.
"""

import importlib
import inspect
from typing import Any, Literal, get_args, get_origin

from roundabout.core import plugins
from roundabout.core.errors import UsageError
from roundabout.models.cluster.state import JobKnowledge, Scheduler

__path__ = plugins.extend_path(__path__, __name__)


def scheduler_names() -> tuple[str, ...]:
    """Return the names of all schedulers, including plugins'."""
    return plugins.module_names(importlib.import_module(__name__))


def make_scheduler(name: str, known: JobKnowledge, **options: Any) -> Scheduler:
    """Return the scheduler called `name` with these options.

    Raises UsageError for an unknown name or option, and for a value that is none of an option's `Literal`.
    """
    if name not in scheduler_names():
        raise UsageError(f"found scheduler '{name}', expected one of: {', '.join(scheduler_names())}")
    make = importlib.import_module(f"{__name__}.{name}").scheduler
    own = {each.name: each.annotation for each in inspect.signature(make).parameters.values() if each.name != "known"}
    for option, value in options.items():
        if option not in own:
            expected = f"one of: {', '.join(own)}" if own else "none"
            raise UsageError(f"found option '{option}' of scheduler '{name}', expected {expected}")
        if get_origin(own[option]) is Literal and value not in (allowed := get_args(own[option])):
            raise UsageError(f"found {option} '{value}', expected one of: {', '.join(map(str, allowed))}")
    made: Scheduler = make(known, **options)
    return made
