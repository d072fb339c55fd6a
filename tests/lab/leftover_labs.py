# SPDX-License-Identifier: Apache-2.0
"""Labs of test sessions that were killed: no journal has them, but their names have the session's process."""

import re
from collections.abc import Iterable

OF_TESTS = re.compile(r"(?:test|bystander)-(?:[a-z]+-)?(\d+)(?:-[a-z0-9]+)?")


def of_dead_sessions(names: Iterable[str], processes: Iterable[str]) -> list[str]:
    """Return the labs of `names` that a test made whose process is not among `processes`."""
    alive = set(processes)
    return [name for name in names if (made := OF_TESTS.fullmatch(name)) and made[1] not in alive]
