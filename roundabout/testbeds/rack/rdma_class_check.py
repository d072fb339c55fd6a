# SPDX-License-Identifier: Apache-2.0
"""Check of the classes of RDMA packets by traffic: NIC counters during runs of ib_write_bw.

First, each server writes to the next one, and the last to the first. Such a ring uses every link of a tree in both
directions. Then several servers write to one (an incast), so that its switch marks packets. The receiver must send
CNPs, and the senders must handle them, but no more than all servers sent. The module dcqcn_check tests that NICs react.

Options and output are perftest's (src/perftest_parameters.c, the same from 4.4 to 26.04). `--tclass` has an effect only
without -R (perftest_resources.c). With `--output=bandwidth` or `--output=latency` the last line of stdout is one
number. Without -F, perftest reports nothing if CPUs' clock rates differ. Counters are mlx5's (drivers/net/ethernet/
mellanox/mlx5/core/en_stats.c, of the physical port; drivers/infiniband/hw/mlx5/counters.c) and those of Linux:
`carrier_changes` in sysfs, and FEC's blocks by `ethtool -I --show-fec` (Linux commit be85dbfeb37c shows its output).
"""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from roundabout.core.errors import RoundaboutError
from roundabout.runner.hosts.connections import Connection
from roundabout.runner.hosts.host_group import Host
from roundabout.runner.hosts.programs import ENDS_WITH_STDIN, Program, call, check_call
from roundabout.testbeds.rack.examination import DEVICE, GID, SSH, WRITE, Finding
from roundabout.testbeds.rack.inventory import LosslessClasses

DURATION_S = 3
TEST_TIMEOUT_S = 30  # time limit of a test on its server
FIRST_PORT = 18515  # perftest's default port
SENDERS = 8  # largest number of senders in the incast
ELSEWHERE = 0.01  # tolerated share of bytes in other priorities, such as TCP and ARP; a guess
DEVICES = "/sys/class/infiniband"
ALL = "all servers"
# Options for emulated machines: a timeout of 4.3 s (4.096 us * 2^20, InfiniBand's local ack timeout), because they are
# slow, and 64 KiB under way, which a slow link carries in a fraction of that.
EMULATED = ("-u", "20", "-s", "4096", "-t", "16")

COUNTERS = r"""
ethtool -S "$1"
ethtool -I --show-fec "$1" 2> /dev/null
for each in "$2/ports/1/hw_counters/"* "/sys/class/net/$1/carrier_changes"; do
  [ ! -r "$each" ] || echo "${each##*/}: $(cat "$each")"
done
"""

# Runs a program of perftest at one address. Root removes the limit of pinned memory, and gives up its rights then. The
# option for the address of the TCP connection has this name since perftest 23.07 (commit 8ff29c1). Before, it listens
# at all addresses: 4.5's --source_ip is hidden by another option of the same name.
PERFTEST = """
program=$1 address=$2
shift 2
case $("$program" --help 2>&1) in *bind_source_ip*) set -- --bind_source_ip "$address" "$@" ;; esac
set -- "$program" "$@"
[ "$(id -u)" != 0 ] || set -- setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs "$@"
ulimit -l unlimited 2> /dev/null
exec "$@"
"""

Counters = Mapping[str, int]


class Perftest(NamedTuple):
    """A program of perftest with the options of one measurement, whose last line is the measured figure."""

    program: str
    options: tuple[str, ...]
    figure: str


BANDWIDTH = Perftest(
    "ib_write_bw", ("-D", str(DURATION_S), "-F", "--report_gbits", "--output=bandwidth"), "a bandwidth"
)


class NoRdmaError(RoundaboutError):
    """Error for a server that lacks a requirement of RDMA."""


class UnequalRdmaError(RoundaboutError):
    """Error for a NIC without an RDMA device or GID in a rack whose other NICs have them."""

    def __init__(self, nic: str, missing: Finding) -> None:
        super().__init__(
            f"{nic}: {missing.name}: found {missing.found}, expected one, as other NICs have", missing.mend
        )
        self.nic, self.missing = nic, missing


class Difference(NamedTuple):
    """A difference between an expected and a found value. `what` names the compared item."""

    what: str
    expected: str
    found: str


class Row(NamedTuple):
    """The result of one test. `source` lists several servers with commas, and `gbps` is None without a rate.

    `what` names the tested property, `expected` its requirement, and `found` the result if nothing is `wrong`.
    `unmeasured` is the reason for a missing result.
    """

    source: str
    to: str
    gbps: float | None
    wrong: tuple[Difference, ...]
    what: str = "ib_write_bw"
    expected: str = "packets in their classes"
    found: str = "all in their classes"
    unmeasured: str = ""


class RdmaEnd(NamedTuple):
    """A server's RDMA endpoint: its connection, RDMA device and GID index, and further options of ib_write_bw."""

    host: Host
    connection: Connection
    device: str
    gid_index: int
    options: tuple[str, ...] = ()

    def counters(self) -> Counters:
        """Return all counters of the server's NIC, by name. Raises RoundaboutError if they cannot be read."""
        words = ["sh", "-c", COUNTERS, "sh", self.host.interface, f"{DEVICES}/{self.device}"]
        pairs = (line.partition(":") for line in check_call(self.connection, words).splitlines())
        return {name.strip(): int(value) for name, _, value in pairs if value.strip().isdigit()}


def rdma_end(host: Host, connection: Connection, found: Sequence[Finding], options: tuple[str, ...] = ()) -> RdmaEnd:
    """Return a server's endpoint from doctor's findings. Raises NoRdmaError if a requirement is missing."""
    by_name = {each.name: each for each in found}
    for each in (by_name[name] for name in (SSH, DEVICE, GID, WRITE) if name in by_name):
        if not each.good:
            raise NoRdmaError(f"{host.name}: {each.name}: {each.found}", each.mend)
    return RdmaEnd(host, connection, by_name[DEVICE].found, int(by_name[GID].found.split()[0]), options)


def refuse_unequal(found: Mapping[str, Sequence[Finding]]) -> None:
    """Raise UnequalRdmaError for the first NIC without RDMA, if others have it. `found` has findings by NIC."""
    missing = {nic: each for nic, own in found.items() for each in own if each.name in (DEVICE, GID) and not each.good}
    if missing and any(each.name == GID and each.good for own in found.values() for each in own):
        raise UnequalRdmaError(*next(iter(missing.items())))


def check_traffic(rails: Sequence[Sequence[RdmaEnd]], lossless: LosslessClasses) -> Iterator[Row]:
    """Run all tests and yield a row for each pair of the rings, for each incast, and for CNPs.

    Each rail has a ring, and with three servers or more an incast. Raises RoundaboutError if a test fails.
    """
    ends = [end for rail in rails for end in rail]
    before = [each.counters() for each in ends]
    for rail in rails:
        yield from _check_rail(rail, lossless)
    yield cnp_row([counter_rises(*pair) for pair in zip(before, [each.counters() for each in ends], strict=True)])


def _check_rail(ends: Sequence[RdmaEnd], lossless: LosslessClasses) -> Iterator[Row]:
    if len(ends) < 2:
        name = ends[0].host.name
        yield Row(name, name, None, (), unmeasured=f"no other server has a NIC on the rail of {name}")
        return
    for source, to in zip(ends, [*ends[1:], ends[0]], strict=True):
        yield _pair(source, to, lossless)
    if len(ends) > 2:
        yield _incast(ends[1 : 1 + SENDERS], ends[0], lossless)


def _pair(source: RdmaEnd, to: RdmaEnd, lossless: LosslessClasses) -> Row:
    before = source.counters(), to.counters()
    (gbps,), failed = write_to_one([source], to, lossless.tos)
    sent, received = counter_rises(before[0], source.counters()), counter_rises(before[1], to.counters())
    least_bytes = round(gbps * 1e9 / 8 * DURATION_S / 2)  # perftest leaves out up to half of the time
    wrong = (
        *check_priorities(source.host.name, "tx", sent, lossless.priority, least_bytes),
        *check_priorities(to.host.name, "rx", received, lossless.priority, least_bytes),
    )
    return Row(source.host.name, to.host.name, gbps, failed or wrong)


def check_priorities(host: str, side: str, risen: Counters, priority: int, least_bytes: int) -> Iterator[Difference]:
    """Yield a difference if a NIC sent too few bytes in `priority`, or too many in other priorities.

    `side` is tx or rx. `risen` has the increments of the NIC's counters. At least `least_bytes` are expected in
    `priority`, and at most a share ELSEWHERE in other priorities.
    """
    by_priority = [risen.get(f"{side}_prio{each}_bytes", 0) for each in range(8)]
    inside = by_priority.pop(priority)
    name = f"{side}_prio{priority}_bytes"
    if inside < least_bytes:
        yield Difference(
            f"{host} {name}", f"{least_bytes} at least", _format_rise(risen, name) + _describe_others(by_priority)
        )
    elif sum(by_priority) > ELSEWHERE * inside:
        most = round(ELSEWHERE * inside)
        yield Difference(f"{host} {side} in other priorities", f"{most} bytes at most", str(sum(by_priority)))


def _describe_others(by_priority: Sequence[int]) -> str:
    return f", and {sum(by_priority)} in other priorities" if any(by_priority) else ""


def _incast(sources: Sequence[RdmaEnd], to: RdmaEnd, lossless: LosslessClasses) -> Row:
    before = [each.counters() for each in (to, *sources)]
    gbps, failed = write_to_one(sources, to, lossless.tos)
    received, *sent = [
        counter_rises(*pair) for pair in zip(before, [each.counters() for each in (to, *sources)], strict=True)
    ]
    requested = [(to, received, "np_cnp_sent"), (to, received, f"tx_prio{lossless.cnp_priority}_packets")]
    requested += [(source, risen, "rp_cnp_handled") for source, risen in zip(sources, sent, strict=True)]
    still = [
        Difference(f"{each.host.name} {name}", "1 at least", _format_rise(risen, name))
        for each, risen, name in requested
        if not risen.get(name)
    ]
    return Row(", ".join(each.host.name for each in sources), to.host.name, sum(gbps), failed or tuple(still))


def cnp_row(risen: Sequence[Counters]) -> Row:
    """Return the row that compares the CNPs that all servers handled and sent. `risen` has the increments by server.

    More handled than sent ones were forged, or came from outside the inventory. CNPs can also be lost.
    """
    sent, handled = ([each[name] for each in risen if name in each] for name in ("np_cnp_sent", "rp_cnp_handled"))
    found = f"{sum(handled)} handled, {sum(sent)} sent"
    row = Row(ALL, ALL, None, (), "CNPs", "no more CNPs handled than sent", found)
    if len(sent) < len(risen) or not handled:
        return row._replace(unmeasured="not all NICs count np_cnp_sent and rp_cnp_handled")
    if sum(handled) <= sum(sent):
        return row
    wrong = f"{sum(handled)}: forged, or from outside the inventory"
    return row._replace(wrong=(Difference("rp_cnp_handled", f"{sum(sent)} at most, which these servers sent", wrong),))


def _format_rise(risen: Counters, name: str) -> str:
    return str(risen[name]) if name in risen else "no such counter"


def counter_rises(before: Counters, after: Counters) -> Counters:
    """Return the increments of counters, by name."""
    return {name: value - before.get(name, 0) for name, value in after.items()}


# --- ib_write_bw


def write_to_one(
    sources: Sequence[RdmaEnd], to: RdmaEnd, tos: int, test: Perftest = BANDWIDTH
) -> tuple[list[float], tuple[Difference, ...]]:
    """Let all sources write to one server at once; return the figure of each, such as Gbit/s, and the failures."""
    ports = range(FIRST_PORT, FIRST_PORT + len(sources))
    with ExitStack() as stack:
        for port in ports:
            _wait_until_listening(
                stack.enter_context(_run_program(to, perftest_command(to, port, tos, test))), to, port
            )
        clients = [
            stack.enter_context(_run_program(source, [*perftest_command(source, port, tos, test), to.host.address]))
            for source, port in zip(sources, ports, strict=True)
        ]
        for client in clients:
            client.finish(TEST_TIMEOUT_S)
    reported = [(client, _figure(client)) for client in clients]
    failed = [
        Difference(f"{each.host} {test.program}", test.figure, each.describe_end())
        for each, figure in reported
        if figure is None
    ]
    return [figure or 0.0 for _, figure in reported], tuple(failed)


def _figure(client: Program) -> float | None:
    """Return the figure that the client printed last, if it came to its end."""
    last = client.lines[-1] if client.lines else ""
    return float(last) if client.status == 0 and re.fullmatch(r"[0-9]+\.[0-9]+", last) else None


def perftest_command(of: RdmaEnd, port: int, tos: int, test: Perftest = BANDWIDTH) -> list[str]:
    """Return the command of a test for an endpoint. For a client, append the server's address.

    The test's options go before those of the endpoint: perftest takes the last of an option.
    """
    where = ["-d", of.device, "-x", str(of.gid_index), "-p", str(port), f"--tclass={tos}"]
    return ["sh", "-c", PERFTEST, "sh", test.program, of.host.address, *where, *of.options, *test.options]


@contextmanager
def _run_program(of: RdmaEnd, argv: Sequence[str]) -> Iterator[Program]:
    """Run the program on a server until the context ends."""
    program = Program(of.host.name, of.connection, ["timeout", str(TEST_TIMEOUT_S), *ENDS_WITH_STDIN, *argv])
    try:
        yield program
    finally:
        program.close_stdin()
        program.finish()


def _wait_until_listening(server: Program, of: RdmaEnd, port: int) -> None:
    """Wait until the server listens. Raises RoundaboutError."""
    deadline = time.monotonic() + TEST_TIMEOUT_S
    while not call(of.connection, ["ss", "-Hltn", f"sport = :{port}"]).stdout:
        if server.has_ended or time.monotonic() > deadline:
            why = server.describe_end() if server.has_ended else f"it does not listen after {TEST_TIMEOUT_S} s"
            raise RoundaboutError(f"{of.host.name}: ib_write_bw: found {why}, expected it to listen on port {port}")
        time.sleep(0.1)
