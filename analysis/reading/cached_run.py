# SPDX-License-Identifier: Apache-2.0
"""A cache of values read from a run, because opening hundreds of files takes seconds."""

from collections.abc import Callable, Hashable
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from roundabout.store import Run

P = ParamSpec("P")
T = TypeVar("T")


class CachedRun(Run):
    """A finished run that caches the results of functions marked `cached_per_run`.

    Callers must not modify the results.
    """

    def __init__(self, run: Run) -> None:
        super().__init__(run.path)
        self.made: dict[Hashable, Any] = {}

    @cached_property
    def _records(self) -> list[dict[str, Any]]:
        return super().trials()

    def trials(self) -> list[dict[str, Any]]:
        """Return the records of all committed trials."""
        return self._records


def cached_per_run(make: Callable[Concatenate[Run, P], T]) -> Callable[Concatenate[Run, P], T]:
    """Return the function, which is then computed once for each `CachedRun` and each set of hashable arguments."""

    @wraps(make)
    def reader(run: Run, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if not isinstance(run, CachedRun):
            return make(run, *args, **kwargs)
        key = (make, args, tuple(sorted(kwargs.items())))
        if key not in run.made:
            run.made[key] = make(run, *args, **kwargs)
        return cast("T", run.made[key])

    return reader
