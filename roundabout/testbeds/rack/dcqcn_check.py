# SPDX-License-Identifier: Apache-2.0
"""Check that NICs apply DCQCN's timer T: the rate of a congested sender with a short and with a long T.

Counters do not show it, because a NIC that ignores DCQCN's parameters counts handled CNPs, too. Therefore each server
writes to a second one beside a third one, on links of the same rate, so that the receiver's port is congested. The
third server keeps its settings. With a longer T, the tested sender recovers later from each CNP, and gets less.

A NIC applies T if each of its rates with the long T is below each of its rates with the short T. The order of the RUNS
runs with each T is random. Therefore a NIC that ignores T passes with a probability of 1 / C(2 RUNS, RUNS), 1 of 252,
however much its rates scatter or drift.
"""

import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from roundabout.core.errors import RoundaboutError
from roundabout.runner.hosts.connections import LostHostError
from roundabout.runner.hosts.programs import check_call
from roundabout.runner.session.host_settings import settings_command
from roundabout.testbeds.rack.rdma_class_check import Difference, RdmaEnd, Row, counter_rises, write_to_one

SHORT_US, LONG_US = 100, 20000
RUNS = 5  # runs with each T
LEAST_RATIO = 10  # of the two T that the NIC holds; less of a difference may not show in the rates
HANDLED = "rp_cnp_handled"
IF_THERE = '[ ! -e "$3" ] || exec "$@"'  # the third word of settings_command is the program

Rates = Mapping[int, Sequence[float]]
"""The tested sender's rates in Gbit/s, by T in microseconds."""


class NotMeasuredError(RoundaboutError):
    """Error for a NIC whose T cannot be tested. The message is the reason."""


class Owner(NamedTuple):
    """The owner of the changed settings: its name in the hosts' journals, and the folder of these journals."""

    name: str
    state: Path

    def set_timer(self, end: RdmaEnd, t_us: int) -> int:
        """Set T on a server, with the byte counter off, so that only T raises rates. Return the T that the NIC holds.

        Raises NotMeasuredError if T cannot be set, and LostHostError.
        """
        nic = end.host.interface
        document = {"dcqcn": {nic: {"T_us": t_us, "byte_counter_bytes": 0}}}
        words = [*settings_command(end.host, self.state), "apply", "--owner", self.name]
        try:
            answer = json.loads(check_call(end.connection, words, json.dumps(document)))
        except LostHostError:
            raise
        except RoundaboutError as error:
            raise NotMeasuredError(" ".join(error.message.split())) from error
        return int(answer["applied"]["dcqcn"][nic]["T_us"])

    def restore(self, ends: Iterable[RdmaEnd]) -> None:
        """Restore the settings of servers; one without the settings program has none. Raises RoundaboutError."""
        for end in ends:
            words = [*settings_command(end.host, self.state), "restore", "--owner", self.name]
            check_call(end.connection, ["sh", "-c", IF_THERE, "sh", *words])


def check_timers(ends: Sequence[RdmaEnd], line_rates: Mapping[str, float], tos: int, owner: Owner) -> Iterator[Row]:
    """Test the NIC of each server and yield a row for each. `line_rates` has the links' rates in Gbit/s, by server.

    The caller calls `owner.restore` afterwards. Raises RoundaboutError.
    """
    for number, tested in enumerate(ends):
        rate = line_rates[tested.host.name]
        others = [each for each in (*ends[number + 1 :], *ends[:number]) if line_rates[each.host.name] == rate]
        if len(others) < 2:
            reason = f"{tested.host.name} needs two other servers on links of {rate:g} Gbit/s to be congested"
            yield _unmeasured_row(tested, others, reason)
            continue
        try:
            yield _check_timer(tested, others, tos, owner)
        except NotMeasuredError as error:
            yield _unmeasured_row(tested, others, error.message)
        finally:
            owner.restore([tested])


def _check_timer(tested: RdmaEnd, others: Sequence[RdmaEnd], tos: int, owner: Owner) -> Row:
    to, beside = others[:2]
    rates: dict[int, list[float]] = {}
    before = tested.counters()
    for t_us in random.sample([SHORT_US, LONG_US] * RUNS, 2 * RUNS):
        held_us = owner.set_timer(tested, t_us)
        (gbps, _), failed = write_to_one([tested, beside], to, tos)
        if failed:
            return Row(f"{tested.host.name}, {beside.host.name}", to.host.name, None, failed, **_texts(tested))
        rates.setdefault(held_us, []).append(gbps)
    if len(rates) != 2 or max(rates) < LEAST_RATIO * min(rates):
        held = " and ".join(f"{each} us" for each in sorted(rates))
        raise NotMeasuredError(f"{tested.host.name} holds {held} in place of T {SHORT_US} us and {LONG_US} us")
    if counter_rises(before, tested.counters()).get(HANDLED) == 0:
        raise NotMeasuredError(f"{tested.host.name} handled no CNPs, so that T could not act")
    return timer_row(tested, beside, to, rates)


def timer_row(tested: RdmaEnd, beside: RdmaEnd, to: RdmaEnd, rates: Rates) -> Row:
    """Return the row of a tested NIC, whose T is the first key of `rates` in order and then the second."""
    short_us, long_us = sorted(rates)
    found = f"with T {short_us} us ({_range(rates[short_us])}); {mean(rates[long_us]):.3g} "
    found += f"with T {long_us} us ({_range(rates[long_us])})"
    wrong = () if applies_timer(rates) else (
        Difference(
            f"{tested.host.name} T",
            f"less with T {long_us} us in every run",
            f"{mean(rates[short_us]):.3g} Gbit/s {found}: this NIC does not apply T",
        ),
    )  # fmt: skip
    source = f"{tested.host.name}, {beside.host.name}"
    return Row(source, to.host.name, mean(rates[short_us]), wrong, **(_texts(tested) | {"found": found}))


def applies_timer(rates: Rates) -> bool:
    """Return True if all rates with the longer T are below all rates with the shorter T."""
    return max(rates[max(rates)]) < min(rates[min(rates)])


def _unmeasured_row(tested: RdmaEnd, others: Sequence[RdmaEnd], reason: str) -> Row:
    to = others[0].host.name if others else ""
    return Row(tested.host.name, to, None, (), **_texts(tested), unmeasured=reason)


def _texts(tested: RdmaEnd) -> dict[str, str]:
    return {"what": f"{tested.host.name} T", "expected": f"less with T {LONG_US} us in every run"}


def _range(rates: Sequence[float]) -> str:
    return f"{min(rates):.3g} to {max(rates):.3g}"
