# SPDX-License-Identifier: Apache-2.0
"""Check of what each NIC carries by RDMA: ib_write_bw and ib_write_lat from each NIC to those of all other servers.

Pairs are measured at the same time if they share no server and no switch's uplinks. A slower result is then a fault of
the NICs and links between them. Bandwidth is measured with several numbers of queue pairs, because ECMP spreads queue
pairs, and because some NICs need several of them for their rate.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import permutations
from typing import NamedTuple

from roundabout.core.disjoint_rounds import disjoint_rounds
from roundabout.testbeds.rack.rdma_class_check import BANDWIDTH, Counters, Difference, Perftest, RdmaEnd, write_to_one

QUEUE_PAIRS = (1, 2, 4)
# With one outstanding message of two bytes: half of the round trip, mean of 1,000 messages.
LATENCY = Perftest("ib_write_lat", ("-n", "1000", "-s", "2", "-F", "--output=latency"), "a latency")
# Counters that a healthy lossless fabric does not change: of discarded, damaged and retransmitted packets, of FEC, and
# of the link. FEC corrects some blocks on every link of PAM4, so `corrected_blocks` is not among them.
UNCHANGED = re.compile(
    r"[rt]x_(prio\d_)?discards(_phy)?|\w*crc_errors_phy|\w*symbol_err(or)?s?_phy|uncorrectable_blocks"
    r"|rx_icrc_encapsulated|out_of_sequence|packet_seq_err|local_ack_timeout_err|implied_nak_seq_err|duplicate_request"
    r"|rnr_nak_retry_err|carrier_changes|link_down_events_phy"
    r"|out_of_seq_request|rcvd_seq_err|completer_retry_err"  # soft-RoCE's (drivers/infiniband/sw/rxe/rxe_hw_counters.c)
)

Pair = tuple[RdmaEnd, RdmaEnd]
"""The NICs of a sender and a receiver."""


class PairFigures(NamedTuple):
    """The figures of writes from one NIC to another: Gbit/s by number of queue pairs, and the latency in us."""

    source: RdmaEnd
    to: RdmaEnd
    gbps: Mapping[int, float]
    latency_us: float
    failed: tuple[Difference, ...]


def measure_pairs(ends: Sequence[RdmaEnd], tos: int, switch_of: Callable[[RdmaEnd], str]) -> Iterator[PairFigures]:
    """Measure all ordered pairs of NICs, each of another server, and yield their figures.

    `switch_of` returns the switch of a NIC. Raises RoundaboutError.
    """

    def resources(pair: Pair) -> set[str]:
        switches = {switch_of(end) for end in pair}
        return {end.host.name for end in pair} | (switches if len(switches) > 1 else set())

    for together in disjoint_rounds(permutations(ends, 2), resources):
        with ThreadPoolExecutor(len(together)) as pool, _close_if_interrupted(ends):
            yield from pool.map(partial(_measure, tos), together)


@contextmanager
def _close_if_interrupted(ends: Sequence[RdmaEnd]) -> Iterator[None]:
    """Close the connections if the block fails or is interrupted, which ends their programs.

    Otherwise the threads, and Ctrl-C with them, would wait for the remaining tests.
    """
    try:
        yield
    except BaseException:
        for end in ends:
            end.connection.close()
        raise


def _measure(tos: int, pair: Pair) -> PairFigures:
    source, to = pair
    gbps: dict[int, float] = {}
    failed: list[Difference] = []
    for number in QUEUE_PAIRS:
        test = BANDWIDTH._replace(options=("-q", str(number), *BANDWIDTH.options))
        (gbps[number],), wrong = write_to_one([source], to, tos, test)
        failed += wrong
    (latency_us,), wrong = write_to_one([source], to, tos, LATENCY)
    return PairFigures(source, to, gbps, latency_us, (*failed, *wrong))


def unchanged_counters(counters: Counters) -> dict[str, int]:
    """Return those of a NIC's counters that a healthy lossless fabric does not change."""
    return {name: value for name, value in counters.items() if UNCHANGED.fullmatch(name)}
