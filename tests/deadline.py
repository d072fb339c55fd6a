# SPDX-License-Identifier: Apache-2.0
"""Waits of tests for events that take an unknown time, such as the end of a process."""

import time
from collections.abc import Callable
from typing import Any


def wait_for(
    condition: Callable[[], Any], seconds: float = 60, *, what: str = "the condition", every_s: float = 0.02
) -> Any:
    """Return the value of `condition` as soon as it is true. Fail if it is still false after `seconds`."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(every_s)
    return found
