# SPDX-License-Identifier: Apache-2.0
"""Deadlines on waits for a host.

Only time in which this process ran counts. A process that was stopped and continues gives its hosts their full time.
"""

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import TypeVar

SLICE_S = 1.0  # being stopped costs a deadline no more than this

T = TypeVar("T")


def time_slices(seconds: float) -> list[float]:
    """Return `seconds` in slices, to be waited for one after another."""
    count = math.ceil(seconds / SLICE_S)
    return [seconds / count] * count


def take_within(queue: "SimpleQueue[T]", slices: list[float]) -> T:
    """Return the next item of `queue`. A slice in which nothing comes is used up. Raises Empty if all are used up."""
    while slices:
        try:
            return queue.get(timeout=slices[-1])
        except Empty:
            slices.pop()
    raise Empty


@contextmanager
def within(seconds: float, drop: Callable[[], None]) -> Iterator[threading.Event]:
    """Call `drop` in a thread if the context lasts longer, and set the event. `drop` must end the blocking call."""
    ended, overdue = threading.Event(), threading.Event()

    def watch() -> None:
        if not any(ended.wait(slice_s) for slice_s in time_slices(seconds)):
            overdue.set()
            drop()

    threading.Thread(target=watch, name="deadline", daemon=True).start()
    try:
        yield overdue
    finally:
        ended.set()
