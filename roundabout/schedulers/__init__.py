# SPDX-License-Identifier: Apache-2.0
"""Who runs where: one file a scheduler, also from folders on ROUNDABOUT_PATH; `scheduler(known, **options)` makes it.

roundabout.cluster.state has what it makes, a `Scheduler`, and what that knows of jobs before they run, `Known`.
"""

import importlib
from typing import Any

from roundabout import rooms
from roundabout.cluster.state import Known, Scheduler
from roundabout.errors import UsageError

__path__ = rooms.extended(__path__, __name__)


def names() -> tuple[str, ...]:
    """The schedulers that there are."""
    return rooms.names(importlib.import_module(__name__))


def named(name: str, known: Known, **options: Any) -> Scheduler:
    """The scheduler of that name. Raises UsageError."""
    if name not in names():
        raise UsageError(f"found scheduler '{name}', expected one of: {', '.join(names())}")
    made: Scheduler = importlib.import_module(f"{__name__}.{name}").scheduler(known, **options)
    return made
