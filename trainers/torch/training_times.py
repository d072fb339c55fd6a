# SPDX-License-Identifier: Apache-2.0
"""Clocks for the begins and ends of an iteration's parts: known at once on a CPU, later on a GPU."""

import collections
import time


def sleep_until(at_ns):
    """Sleep until `at_ns` of the monotonic clock; return how late it woke, ns, or 0 for a past instant."""
    left_ns = at_ns - time.monotonic_ns()
    if left_ns <= 0:
        return 0
    time.sleep(left_ns / 1e9)
    return max(0, time.monotonic_ns() - at_ns)


class HostClock:
    """A clock whose marks are instants of the host's clock, ns."""

    def mark(self):
        """Return the present instant."""
        return time.monotonic_ns()

    def passed(self, mark):
        """Return True if the mark's instant is known."""
        return True

    def wait(self, mark):
        """Wait until the mark's instant is known."""

    def host_ns(self, mark):
        """Return the host's clock at the mark."""
        return mark

    def rebase(self, mark):
        """Measure later marks from this one."""


class DeviceClock:
    """A clock whose marks are events in a GPU's queue, measured from a mark with a known instant of the host's clock.

    Only `wait` waits for marks. Distances are 32-bit floats of milliseconds, so `rebase` keeps them short. `event`
    creates an event of CUDA, unless a test replaces it.
    """

    def __init__(self, event):
        self._event = event
        self._base = self.mark()
        self._base.synchronize()
        self._base_ns = time.monotonic_ns()

    def mark(self):
        """Return a mark at the present end of the GPU's queue."""
        event = self._event()
        event.record()
        return event

    def passed(self, mark):
        """Return True if the GPU has reached the mark."""
        return mark.query()

    def wait(self, mark):
        """Wait until the GPU has reached the mark."""
        mark.synchronize()

    def host_ns(self, mark):
        """Return the host's clock when the GPU reached the mark."""
        return self._base_ns + round(self._base.elapsed_time(mark) * 1e6)

    def rebase(self, mark):
        """Measure later marks from this one."""
        self._base_ns, self._base = self.host_ns(mark), mark


class Steps:
    """Iterations whose end is still queued; each is reported, in order, once its marks are passed."""

    def __init__(self, clock, report):
        self._clock, self._report, self._waiting = clock, report, collections.deque()

    def ended(self, ready, end, **fields):
        """Add an iteration by the marks of its first communication's begin and of its last one's end."""
        self._waiting.append((ready, end, fields))
        self.poll()

    def poll(self):
        """Report the iterations that have ended."""
        while self._waiting and self._clock.passed(self._waiting[0][1]):
            ready, end, fields = self._waiting.popleft()
            self._report(self._clock.host_ns(ready), self._clock.host_ns(end), **fields)
            self._clock.rebase(end)

    def finish(self):
        """Wait for the remaining iterations, and report them."""
        if self._waiting:
            self._clock.wait(self._waiting[-1][1])
        self.poll()


class Pace:
    """The earliest instant of an iteration's first communication, until which a hook waits before it sends."""

    def __init__(self, clock, computing_ns):
        self._clock, self._computing_ns = clock, computing_ns
        self.begin(0)

    def begin(self, begin_ns, after=None):
        """Begin an iteration at `begin_ns` of the host's clock, but not before the mark `after`.

        A GPU is still sending the previous iteration when the host has queued it.
        """
        self._begin_ns, self._after, self.ready, self.late_ns = begin_ns, after, None, 0

    def hold(self, sent):
        """Return `sent`; if the job is paced, wait first until the profile's computing time has passed."""
        if self.ready is None:
            if self._computing_ns:
                self.late_ns = sleep_until(self._started_ns() + self._computing_ns)
            self.ready = self._clock.mark()
        return sent

    def _started_ns(self):
        if self._after is None:
            return self._begin_ns
        self._clock.wait(self._after)
        return max(self._begin_ns, self._clock.host_ns(self._after))
