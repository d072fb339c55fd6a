# SPDX-License-Identifier: Apache-2.0
"""Testbeds: one folder each. The folder's name is the testbed's name."""

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from roundabout.core import plugins
from roundabout.core.errors import UsageError
from roundabout.runner.machine import temporary
from roundabout.runner.machine.undo_journal import Entry
from roundabout.runner.testbed import TestbedProvider
from roundabout.spec.errors import suggest

__path__ = plugins.extend_path(__path__, __name__)

DEFAULT = "lab"
INVENTORY_TESTBED = "rack"
"""The testbed of an inventory file if no other testbed is named."""


def names() -> tuple[str, ...]:
    """Return the names of all testbeds, including plugins."""
    return plugins.module_names(sys.modules[__name__])


def find_provider(where: Mapping[str, str]) -> TestbedProvider:
    """Return the provider for the request `where`: the field `testbed` and the testbed's options.

    Manifests and journals record such requests. Raises UsageError if the testbed does not exist, and the errors of its
    `create_provider`.
    """
    name = where.get("testbed") or (INVENTORY_TESTBED if "inventory" in where else DEFAULT)
    if name not in names():
        raise UsageError(f"found testbed {name!r}, expected one of: {', '.join(names())}", suggest(name, names()))
    found: TestbedProvider = _creator(name)(where)
    return found


def _creator(testbed: str) -> Callable[[Mapping[str, str]], TestbedProvider]:
    """Return the function `create_provider` of a testbed's module `provider`."""
    creator: Callable[[Mapping[str, str]], TestbedProvider] = importlib.import_module(
        f"{__name__}.{testbed}.provider"
    ).create_provider
    return creator


def undo(entry: Entry) -> None:
    """Undo the change of a journal entry through the provider that made it. Raises RoundaboutError."""
    if entry["kind"] == temporary.KIND:
        temporary.remove(entry)
    else:
        find_provider(entry["where"]).undo(entry)


@contextmanager
def inventories(named: str) -> Iterator[tuple[Path, ...]]:
    """Yield paths of the Ansible inventories of `named`, which is a file or TESTBED:NAME. Raises UsageError."""
    testbed, colon, name = named.partition(":")
    known = colon and testbed in names()
    where = {"testbed": testbed} if known else {"inventory": named}
    with find_provider(where).inventories(name if known else named) as paths:
        yield tuple(paths)
