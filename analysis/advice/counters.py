# SPDX-License-Identifier: Apache-2.0
"""Byte counters of hosts over time: valid samples, and the sent bytes."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from analysis.advice.errors import AdviceError
from analysis.statistics.cumulative_counter import Floats, Integers
from analysis.statistics.phase_folding import WorkerCounter
from roundabout.spec.frames import HEADER_BYTES
from roundabout.store.counter_increments import WRAPS_BITS, Increments, compute_increments

HOSTS = ("host", "instance", "node")
"""Labels and columns that usually name hosts; of several that fit equally well the first is used."""
GAP = 5.0
"""A gap is a distance between samples of more than this multiple of their median distance."""
MAX_MISSING = 0.25
"""Largest share of the time that gaps and resets may take; a counter that exceeds it is refused."""
FASTER = 4.0
"""Rate of a host's interface over the link's rate, at most; a guess. It bounds the gain of a counter that wrapped."""
UNEVEN = 2.0
"""Largest rise of a 32-bit counter across a wrap, over its fastest rise elsewhere; a guess. A faster one is a reset."""
FALLS = 0.25
"""Largest share of falls among changes. Values that exceed it, with more than MAX_RESETS falls, are no counter."""
MAX_RESETS = 2
MAX_CLOCK_STEPS = 3
"""Largest number of times at which samples in order of arrival go back; more of them are in no order at all."""
RESETS = 0.001
"""Largest share of resets among changes. Values that exceed it, with more than MAX_RESETS resets, are no counter."""
ON_WIRE = 1.1
"""Largest mean rate of a counter over the payload capacity: headers of small packets add 5 %, and rates vary."""
END_NS = 2.0**62
"""Latest valid time, in the year 2116: differences of earlier times fit into 64-bit integers."""


@dataclass(frozen=True)
class HostCounter:
    """A host's samples: bytes sent until `at_ns` (both of length n, as read), and packets if they are counted.

    An unreadable value is nan.
    """

    at_ns: Integers
    bytes: Floats
    packets: Floats | None = None

    @property
    def count_falls(self) -> tuple[int, int]:
        """Return the number of falls and the number of changes, of bytes or of packets, whichever fell more often."""
        counted = [values for values in (self.bytes, self.packets) if values is not None]
        steps = [np.diff(values[~np.isnan(values)]) for values in counted]
        return max((int((each < 0).sum()), int((each != 0).sum())) for each in steps)

    def to_sent_bytes(self, capacity_gbps: float) -> WorkerCounter:
        """Return the bytes that the host sent since the first sample, without headers if packets are counted.

        Bytes that a reset or an unreadable sample hides count as 0. The affected iteration then differs from the
        others, and folding leaves it out.

        Raises AdviceError with fewer than two samples, or if too much of the time is missing. It also raises
        AdviceError if the values are no counter, or rise faster than a link can carry.
        """
        if len(self.at_ns) < 2:
            found = "one sample" if len(self.at_ns) else "no sample"
            raise AdviceError(f"found {found}, expected two at least")
        gained = self._gained(self.bytes, FASTER * capacity_gbps / 8 * 1e9)
        missing = self._missing(gained)
        if missing > MAX_MISSING:
            fastest = f"{FASTER * capacity_gbps:g} Gbit/s"
            found = f"{100 * missing:.0f} % of the time in gaps, resets and rises above {fastest}"
            raise AdviceError(f"found {found}, expected {100 * MAX_MISSING:.0f} % at most")
        self._check_mean(gained, capacity_gbps)
        payload = np.nan_to_num(gained.gained)
        if self.packets is not None:
            payload = self._without_headers(payload, capacity_gbps)
        return WorkerCounter(self.at_ns, np.concatenate([[0], np.cumsum(payload)]).astype(np.int64))

    def _gained(self, values: Floats, most_per_s: float) -> Increments:
        """Return the gains between samples; a rise that no interface is fast enough for has an unknown gain.

        A counter that falls has 32 bits if each value fits into them, and if no fall, taken for a wrap, is a much
        faster rise than all others. Otherwise falls are resets. Raises AdviceError if there are too many of them.
        """
        steps_s = np.diff(self.at_ns) / 1e9
        rises = np.diff(values) / steps_s
        fell = rises < 0
        if fell.any() and np.nanmax(values) < 1 << WRAPS_BITS:
            fastest = UNEVEN * float(np.max(rises, initial=0.0, where=rises > 0))
            wraps = compute_increments(self.at_ns, values, WRAPS_BITS, most_per_s=min(most_per_s, fastest))
            if (wraps.kind[fell] == "wrap").all():
                return wraps
        falls, changes = int(fell.sum()), int((np.abs(rises) > 0).sum())
        if falls > max(MAX_RESETS, RESETS * changes):
            expected = f"{MAX_RESETS} resets at most, or wraps at 2^{WRAPS_BITS}: is that a gauge, and not a counter?"
            raise AdviceError(f"found values that fell {falls} times in {changes} changes, expected {expected}")
        gained = compute_increments(self.at_ns, values, most_per_s=most_per_s)
        too_fast = gained.gained > most_per_s * steps_s
        return Increments(np.where(too_fast, np.nan, gained.gained), np.where(too_fast, "backwards", gained.kind))

    def _missing(self, gained: Increments) -> float:
        steps = np.diff(self.at_ns)
        lost = ~gained.known | (steps > GAP * np.median(steps))
        return float(steps[lost].sum() / steps.sum())

    def _check_mean(self, gained: Increments, capacity_gbps: float) -> None:
        known_s = np.diff(self.at_ns)[gained.known].sum() / 1e9
        mean_gbps = gained.gained[gained.known].sum() * 8 / 1e9 / known_s
        if mean_gbps > ON_WIRE * capacity_gbps:
            found = f"a mean of {mean_gbps:.4g} Gbit/s"
            raise AdviceError(f"found {found}, expected {capacity_gbps:g} at most: is that a rate, and not a counter?")

    def _without_headers(self, gained: Floats, capacity_gbps: float) -> Floats:
        assert self.packets is not None
        packets = np.nan_to_num(self._gained(self.packets, FASTER * capacity_gbps / 8 * 1e9).gained)
        payload = np.maximum(gained - HEADER_BYTES * packets, 0)
        if gained.any() and not payload.any():
            found = f"{packets.sum():.4g} packets of {gained.sum():.4g} bytes"
            raise AdviceError(f"found {found}, expected more than {HEADER_BYTES} bytes a packet")
        return payload


class Counters(NamedTuple):
    """The counters of each host, and notes on what the source says of them."""

    hosts: dict[str, HostCounter]
    notes: tuple[str, ...] = ()


def check_counters(hosts: Mapping[str, HostCounter], named: Collection[str], source: str) -> None:
    """Raise AdviceError for the first of the `named` hosts whose values fall too often for a counter."""
    for host in sorted(named):
        fell, changed = hosts[host].count_falls if host in hosts else (0, 0)
        if fell > max(MAX_RESETS, FALLS * changed):
            hint = "query the counter itself, without rate() or increase(); one of 32 bits must be read more often"
            found = f"values that fell {fell} times in {changed} changes"
            raise AdviceError(f"{source}: host {host}: found {found}, expected a counter, which rises", hint)


def make_counter(at: Any, unit_ns: int, counts: Any, packets: Any, where: str) -> HostCounter:
    """Return the counter of samples in any order, `at` in units of `unit_ns`.

    Raises AdviceError, which begins with `where`.
    """
    with np.errstate(over="ignore"):  # an overflow is infinite, which the check of the year refuses
        when = at.astype(np.float64) * unit_ns
    if np.isnan(when).any():
        raise AdviceError(f"{where}: found a sample without a time, expected one for each")
    if (outside := np.abs(when) >= END_NS).any():
        found = f"the time {at[outside][0]:.17g}"
        raise AdviceError(f"{where}: found {found}, expected one before the year 2116", "is it in another unit?")
    at_ns, first, which = np.unique(at if unit_ns == 1 else np.rint(when), return_index=True, return_inverse=True)
    columns = [_readable(each, where) for each in (counts, packets) if each is not None]
    _check_order(when, columns[0], where)
    for values in columns:
        if not np.array_equal(values, values[first][which], equal_nan=True):
            cause = "choose an interface"
            if 2 * len(at_ns) < len(when):
                cause = f"the times of {len(when)} samples are {len(at_ns)}: were they rounded?"
            raise AdviceError(f"{where}: found two values for one time, expected one: {cause}")
    return HostCounter(at_ns.astype(np.int64), *(values[first] for values in columns))


def _check_order(when: Floats, values: Floats, where: str) -> None:
    """Raise AdviceError if time goes back while bytes rise: in samples in any order, both do."""
    steps_ns = np.diff(when)
    back = np.flatnonzero(steps_ns < 0)
    if 0 < len(back) <= MAX_CLOCK_STEPS and (np.diff(values)[back] >= 0).all() and values[-1] > values[0]:
        first = back[0]
        found = f"times that go back by {round(-steps_ns[first] / 1e9, 3):g} s after the host's sample {first + 1}"
        raise AdviceError(
            f"{where}: found {found}, expected times that rise", "leave out samples before the clock step"
        )


def _readable(values: Any, where: str) -> Floats:
    """Return samples as numbers; nan for a sample without one. Raises AdviceError for a negative one."""
    found: Floats = values.astype(np.float64)
    found[np.isinf(found)] = np.nan
    if (found < 0).any():
        raise AdviceError(f"{where}: found {np.nanmin(found):g}, expected a counter, which is never negative")
    return found


def host_column(columns: Mapping[str, Iterable[str]], named: Collection[str]) -> str | None:
    """Return the column, or label, whose values name most of the hosts `named`; of equals the first in HOSTS.

    None if no column names any of the hosts, and none is in HOSTS.
    """
    usual = [name for name in HOSTS if name in columns]
    fits = {name: len({host_of(value, named) for value in values} & {*named}) for name, values in columns.items()}
    best = max((*usual, *columns), key=lambda name: fits[name], default=None)
    return best if best in usual or (best and fits[best]) else None


def host_of(value: str, named: Collection[str]) -> str:
    """Return the host of an address, without its port unless `named` contains the address as it is."""
    host, _, port = value.rpartition(":")
    has_port = host and port.isdecimal() and (":" not in host or host.endswith("]"))
    return host if value not in named and has_port else value
