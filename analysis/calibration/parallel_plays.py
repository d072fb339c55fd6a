# SPDX-License-Identifier: Apache-2.0
"""Plays of the packet-level model on several processors. The engine leaves Python to other threads."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from threading import Event
from typing import TypeVar

T = TypeVar("T")


def play_all(
    plays: Sequence[Callable[[Event], T]], processors: int | None, progress: Callable[[list[T], int], None]
) -> list[T]:
    """Return the results of all plays, in their order, so many at once as `processors`; as there are, if None.

    `progress` receives the results of the plays that have just ended, and how many are left. A play gets an event. It
    is set after an error, which is raised, or Ctrl-C.
    """
    stopped = Event()
    with ThreadPoolExecutor(processors or len(os.sched_getaffinity(0)), "plays") as pool:
        begun = [pool.submit(play, stopped) for play in plays]
        left = set(begun)
        try:
            while left:
                done, left = wait(left, return_when=FIRST_COMPLETED)
                progress([each.result() for each in done], len(left))
        finally:
            stopped.set()
            pool.shutdown(cancel_futures=True)
    return [each.result() for each in begun]
