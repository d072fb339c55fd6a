# SPDX-License-Identifier: Apache-2.0
"""Testbeds: one folder each, with everything that is its own, found by the folder's name."""

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from roundabout.core import plugins
from roundabout.core.errors import UsageError
from roundabout.runner.machine import temporary
from roundabout.runner.machine.journal import Entry
from roundabout.runner.testbed import TestbedProvider

__path__ = plugins.extend_path(__path__, __name__)

DEFAULT = "lab"
INVENTORY_TESTBED = "rack"
"""Whose inventory a file is where nothing else was said."""


def names() -> tuple[str, ...]:
    """Return the names of all testbeds, plugins included."""
    return plugins.module_names(sys.modules[__name__])


def find_provider(where: Mapping[str, str]) -> TestbedProvider:
    """Return the provider that a command line, manifest or journal describes: `testbed`, and its options.

    Raises UsageError if there is no such testbed, and the errors of its folder.
    """
    name = where.get("testbed") or (INVENTORY_TESTBED if "inventory" in where else DEFAULT)
    if name not in names():
        raise UsageError(f"found testbed {name!r}, expected one of: {', '.join(names())}")
    found: TestbedProvider = _creator(name)(where)
    return found


def _creator(testbed: str) -> Callable[[Mapping[str, str]], TestbedProvider]:
    """Return the function `create_provider` of a testbed's module `provider`.

    A plugin may call both `facility` until version 0.3.
    """
    package = f"{__name__}.{testbed}"
    try:
        module = importlib.import_module(f"{package}.provider")
    except ModuleNotFoundError as error:
        if error.name != f"{package}.provider":
            raise
        module = importlib.import_module(f"{package}.facility")
    creator: Callable[[Mapping[str, str]], TestbedProvider] = (
        getattr(module, "create_provider", None) or module.facility
    )
    return creator


def undo(entry: Entry) -> None:
    """Undo an entry of a dead run's journal, as the provider that made it would. Raises RoundaboutError."""
    if entry["kind"] == temporary.KIND:
        temporary.remove(entry)
    else:
        find_provider(entry["where"]).undo(entry)


@contextmanager
def inventories(named: str) -> Iterator[tuple[Path, ...]]:
    """Yield the Ansible inventories of `named`: a file, or TESTBED:NAME. Raises UsageError."""
    testbed, colon, name = named.partition(":")
    known = colon and testbed in names()
    where = {"testbed": testbed} if known else {"inventory": named}
    with find_provider(where).inventories(name if known else named) as paths:
        yield tuple(paths)
