# SPDX-License-Identifier: Apache-2.0
"""Deadlines on waits for a host.

Only time in which this process ran counts. If this process was stopped and continued, hosts still get the full time.
"""

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import TypeVar

SLICE_S = 1.0  # largest part of a deadline that is lost if this process is stopped

T = TypeVar("T")


def time_slices(seconds: float) -> list[float]:
    """Return `seconds` divided into slices of at most SLICE_S, for consecutive waits."""
    count = math.ceil(seconds / SLICE_S)
    return [seconds / count] * count


def take_within(queue: "SimpleQueue[T]", slices: list[float]) -> T:
    """Return the next item of `queue`. Remove each slice that passes without an item. Raises Empty after the last."""
    while slices:
        try:
            return queue.get(timeout=slices[-1])
        except Empty:
            slices.pop()
    raise Empty


@contextmanager
def within(seconds: float, drop: Callable[[], None]) -> Iterator[threading.Event]:
    """Call `drop` in a thread if the block lasts longer than `seconds`, and set the yielded event.

    `drop` must make the blocking call in the block return.
    """
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
