# SPDX-License-Identifier: Apache-2.0
"""When an iteration's parts begin and end: on a CPU known at once, on a GPU once it has come so far."""

import collections
import time


def sleep_until(at_ns):
    """Sleep; by how much later than `at_ns` it woke, 0 where that had passed."""
    left_ns = at_ns - time.monotonic_ns()
    if left_ns <= 0:
        return 0
    time.sleep(left_ns / 1e9)
    return max(0, time.monotonic_ns() - at_ns)


class HostClock:
    """Marks are instants of the host's clock, ns."""

    def mark(self):
        """Now."""
        return time.monotonic_ns()

    def passed(self, mark):
        """Whether it can be told."""
        return True

    def wait(self, mark):
        """Until it can be told."""

    def tell_ns(self, mark):
        """The host's clock then."""
        return mark

    def rebase(self, mark):
        """Later marks are told from this one."""


class DeviceClock:
    """Marks are events in a GPU's queue, told by their distance from one whose instant on the host's clock is known.

    Nothing waits for them but `wait`. Distances are 32-bit floats of milliseconds, so they are kept short: `rebase`.
    `event` makes an event; CUDA's, unless a test stands in for it.
    """

    def __init__(self, event):
        self._event = event
        self._base = self.mark()
        self._base.synchronize()
        self._base_ns = time.monotonic_ns()

    def mark(self):
        """Wherever the GPU's queue is now."""
        event = self._event()
        event.record()
        return event

    def passed(self, mark):
        """Whether the GPU has come so far."""
        return mark.query()

    def wait(self, mark):
        """Until it has."""
        mark.synchronize()

    def tell_ns(self, mark):
        """The host's clock when it did."""
        return self._base_ns + round(self._base.elapsed_time(mark) * 1e6)

    def rebase(self, mark):
        """Tell later marks from this one."""
        self._base_ns, self._base = self.tell_ns(mark), mark


class Steps:
    """Iterations that have ended, or will have: each is told once its marks are passed, in order."""

    def __init__(self, clock, tell):
        self._clock, self._tell, self._waiting = clock, tell, collections.deque()

    def ended(self, ready, end, **fields):
        """One more, whose first communication began at one mark, and whose last ended at the other."""
        self._waiting.append((ready, end, fields))
        self.poll()

    def poll(self):
        """Tell those that are over."""
        while self._waiting and self._clock.passed(self._waiting[0][1]):
            ready, end, fields = self._waiting.popleft()
            self._tell(self._clock.tell_ns(ready), self._clock.tell_ns(end), **fields)
            self._clock.rebase(end)

    def finish(self):
        """Wait for the rest, and tell it."""
        if self._waiting:
            self._clock.wait(self._waiting[-1][1])
        self.poll()


class Pace:
    """The earliest instant of an iteration's first communication, for which a hook waits before it sends."""

    def __init__(self, clock, computing_ns):
        self._clock, self._computing_ns = clock, computing_ns
        self.begin(0)

    def begin(self, begin_ns, after=None):
        """Begin an iteration at `begin_ns` of the host's clock, but not before the clock has passed the mark `after`.

        A GPU is still sending the previous iteration when the host has queued it.
        """
        self._begin_ns, self._after, self.ready, self.late_ns = begin_ns, after, None, 0

    def hold(self, sent):
        """Return `sent` once the iteration has computed for as long as its profile says, if it is paced."""
        if self.ready is None:
            if self._computing_ns:
                self.late_ns = sleep_until(self._started_ns() + self._computing_ns)
            self.ready = self._clock.mark()
        return sent

    def _started_ns(self):
        if self._after is None:
            return self._begin_ns
        self._clock.wait(self._after)
        return max(self._begin_ns, self._clock.tell_ns(self._after))
