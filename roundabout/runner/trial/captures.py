# SPDX-License-Identifier: Apache-2.0
"""Captures of hosts during a trial, which are decoded into the tables `packets` and `captures`.

Raw files are stored with their trial in captures/<host>/. The experiment limits the size of each host's rings of files,
one for each NIC. The store enforces the limit of the whole run.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from roundabout.core.errors import RoundaboutError, UsageError
from roundabout.runner.hosts.clocks import UTC_STEP_NS, ClockLog, Reading
from roundabout.runner.hosts.connections import Connection, LostHostError
from roundabout.runner.hosts.host_group import Host, HostGroup
from roundabout.runner.hosts.programs import limit_answer_time
from roundabout.runner.session.host_session import HostSession
from roundabout.runner.tables.packets import Totals, decode, open_parquet
from roundabout.runner.tables.rows import RecordError
from roundabout.spec.capture import Capture
from roundabout.spec.trial_spec import TrialSpec
from roundabout.store import Attempt, Identity, Units, build_table, files, schemas
from roundabout.store.unit_conversion import to_paper_units

START_TIMEOUT_S = 30  # time limit of tcpdump to listen
FETCH_S, FETCH_S_PER_MB = 30, 1.0  # time limit of fetching its files: a constant, and seconds per MB

FLOW = [column.name for column in schemas.TABLES["packets"]].index("flow")
MAX_QUOTED = 200  # bytes of an unexpected line that a message repeats


class CaptureError(RoundaboutError):
    """Error for a capture that cannot start on a host."""


@dataclass(frozen=True)
class NicCapture:
    """The finished capture of one NIC: its files, oldest first, and tcpdump's packet counts."""

    device: str
    began_ns: int  # on the host's monotonic clock
    files: tuple[Path, ...]
    counts: Mapping[str, int | None]  # None: unknown
    rdma_error: str | None = None  # reason if the interface has an RDMA device that tcpdump cannot capture


@contextmanager
def capture_hosts(
    session: HostSession, capture: Capture | None, folder: Path, into: dict[str, list[NicCapture]]
) -> Iterator[None]:
    """Capture packets on the hosts of `capture` for the duration of the block, then copy the files into `folder`.

    The captures of each host's NICs are added to `into`. Without `capture`, do nothing.

    Raises CaptureError if a capture cannot start, RecordError if its files do not arrive, and LostHostError.
    """
    if capture is None:
        yield
        return
    started: dict[str, list[RunningCapture]] = {name: [] for name in capture.hosts}

    def start(host: Host) -> None:
        each_mb = capture.budget_mb // len(host.nics)
        for alone in host.by_nic() if host.name in capture.hosts else ():
            limited = capture.model_copy(update={"budget_mb": each_mb})
            started[host.name].append(RunningCapture(session.connections[host.name], alone, limited))

    def fetch(host: Host) -> list[NicCapture]:
        place = folder / host.name
        return [running.fetch(place, several=len(host.nics) > 1) for running in started.get(host.name, ())]

    try:
        session.on_each_host(start)
        yield
    finally:
        for running in (each for own in started.values() for each in own):
            running.end()
        into.update({name: found for name, found in session.on_each_host(fetch).items() if found})


def check_capture_budget(trial: TrialSpec) -> None:
    """Raise UsageError if the budget of a captured host leaves less than 1 MB for each of its NICs."""
    if trial.capture is None:
        return
    nics, host = max((len(trial.topology.links_of(host)), host) for host in trial.capture.hosts)
    if trial.capture.budget_mb < nics:
        raise UsageError(
            f"capture.budget_mb: found {trial.capture.budget_mb}, allowed are {nics} or more: 1 for each NIC of {host}",
            f"--set capture.budget_mb={nics}",
        )


def capture_command(host: Host, capture: Capture) -> list[str]:
    """Return the command of capture.py on `host`, at its first NIC, with the limits of `capture`."""
    argv = ["python3", "-IS", str(host.prefix / "bin" / "capture.py"), "--interface", host.tap or host.interface]
    return [*argv, "--snap-bytes", str(capture.snap_bytes), "--budget-mb", str(capture.budget_mb)]


class RunningCapture:
    """A running program capture.py on a host, at its first NIC."""

    def __init__(self, connection: Connection, host: Host, capture: Capture) -> None:
        """Start the capture. Raises LostHostError, and CaptureError if it cannot start."""
        self._connection, self._host, self._interface, self._rest = connection, host.name, host.interface, b""
        self._remedy = (
            f"on {host.name}, as root: `tcpdump -i {host.tap or host.interface} -c 1` must print a packet; "
            "`roundabout provision INVENTORY` installs tcpdump on a rack's servers"
        )
        self._channel = connection.start(capture_command(host, capture))
        self._fetch_s = FETCH_S + FETCH_S_PER_MB * capture.budget_mb
        with limit_answer_time(connection, self._channel, START_TIMEOUT_S, "starting a capture"):
            self._began = self._read_line()

    def end(self) -> None:
        """Stop the capture, without waiting for its end."""
        self._channel.close_stdin()

    def fetch(self, folder: Path, *, several: bool = False) -> NicCapture:
        """Fetch the capture's files into `folder`, a host's own. Raises RecordError, LostHostError.

        With `several` NICs, the files are named after their NIC.
        """
        place = files.make_directory(folder, 0o700)  # raw packets hold what hosts said to each other
        prefix = f"{self._interface}-" if several else ""
        try:
            with limit_answer_time(self._connection, self._channel, self._fetch_s, "fetching a capture"):
                counts = self._read_line()
                sizes = counts.pop("files")
                paths = tuple(place / f"{prefix}{number}.pcap" for number in range(len(sizes)))
                for path, size in zip(paths, sizes, strict=True):
                    self._save(path, size)
                self._channel.result()
        except CaptureError as error:
            raise RecordError(error.message) from error
        return NicCapture(self._began["device"], self._began["monotonic_ns"], paths, counts, self._began["rdma_error"])

    def _read_line(self) -> dict[str, Any]:
        """Return the next line of capture.py."""
        while b"\n" not in self._rest:
            self._rest += self._chunk()
        line, _, self._rest = self._rest.partition(b"\n")
        try:
            said: dict[str, Any] = json.loads(line)
        except ValueError:
            self.end()
            while self._channel.read():
                pass
            self._channel.result()
            found = line[:MAX_QUOTED].decode(errors="replace")
            raise CaptureError(f"{self._host}: capture.py printed {found!r}, expected a line of JSON") from None
        return said

    def _save(self, path: Path, size: int) -> None:
        with files.disk_errors(path), files.create_file(path) as file:
            while size:
                chunk = self._rest or self._chunk()
                file.write(chunk[:size])
                self._rest = chunk[size:]
                size -= len(chunk[:size])

    def _chunk(self) -> bytes:
        if chunk := self._channel.read():
            return chunk
        status, stderr = self._channel.result()
        if status is None:
            raise LostHostError(self._host, "the connection broke during a capture")
        why = stderr.splitlines()[-1].removeprefix("capture: ") if stderr else f"it ended with status {status}"
        raise CaptureError(f"{self._host}: capturing failed: {why}", self._remedy)


def rdma_errors(captured: Mapping[str, Sequence[NicCapture]]) -> dict[str, str]:
    """Return the hosts whose captures lack the packets of RDMA, with the reasons, for trial.json."""
    reasons = {
        host: dict.fromkeys(each.rdma_error for each in own if each.rdma_error) for host, own in captured.items()
    }
    return {host: "; ".join(found) for host, found in reasons.items() if found}


def describe_gaps(captured: Mapping[str, Sequence[NicCapture]]) -> str | None:
    """Return a notice about packets that captures lack, or of which they may lack some. None if there are none."""
    notices = []
    if errors := rdma_errors(captured):
        host, error = next(iter(errors.items()))
        notices.append(
            f"captures of {', '.join(errors)} are without RDMA traffic, because tcpdump cannot capture at the RDMA "
            f"device ({host}: {error}). They have what the kernel sends and receives. For RDMA, build libpcap with "
            "--enable-rdma and tcpdump with it, or mirror the switch's port"
        )
    uncounted = [
        host for host, own in captured.items() if any(each.counts.get("dropped_by_kernel") is None for each in own)
    ]
    if uncounted:
        notices.append(f"captures of {', '.join(uncounted)}: dropped packets: unknown")
    return "; ".join(notices) or None


def store(  # noqa: PLR0913, PLR0917 - what a trial's packets belong to
    captured: Mapping[str, Sequence[NicCapture]],
    clock_log: ClockLog,
    site: HostGroup,
    units: Units,
    attempt: Attempt,
    identity: Identity,
) -> None:
    """Decode captures and write the attempt's tables `packets` and `captures`. Raises DecodeError, StoreError."""
    if not captured:
        return
    rows = []
    schema = schemas.schema("packets")
    with open_parquet(attempt.path / "packets.parquet", schema) as writer:
        for host, own in captured.items():
            clock, flows = HostUtc(clock_log, host), 0
            addresses = [nic.address for nic in site.hosts[host].nics]
            for capture in own:

                def write(
                    columns: list[pa.Array], host: str = host, clock: "HostUtc" = clock, first_flow: int = flows
                ) -> None:
                    columns[FLOW] = pc.add(columns[FLOW], pa.scalar(first_flow, columns[FLOW].type))
                    common = _common(identity, host, clock, columns[0])
                    table = pa.Table.from_arrays([*common, *columns], schema=schema)
                    writer.write_table(to_paper_units(table, units))

                totals = decode(capture.files, addresses, write)
                flows += totals.flows
                row = _capture_row(capture, totals, clock)
                rows.append({"host": host, **_when(clock_log, host, capture.began_ns), **row})
    columns = {
        column.name: [row[column.name] for row in rows] for column in schemas.columns("captures")[len(vars(identity)) :]
    }
    attempt.write("captures", build_table("captures", identity, columns, units))


def _common(identity: Identity, host: str, clock: "HostUtc", stamps: pa.Array) -> list[pa.Array]:
    """Return the common columns of packets with these UTC stamps."""
    length = len(stamps)
    host_ns, controller_ns, bound_ns = clock.to_run_ns(stamps.to_numpy())
    names = [*vars(identity).values(), host]
    return [pa.repeat(value, length) for value in names] + [
        pa.array(each) for each in (host_ns, controller_ns, bound_ns)
    ]


class HostUtc:
    """A converter from a host's UTC, the clock of packets' timestamps, to its monotonic clock and the run's clock."""

    def __init__(self, clock_log: ClockLog, host: str) -> None:
        self._clock_log, self._host = clock_log, host
        readings: Sequence[Reading] = clock_log.readings[host]
        # From the first reading's: floats do not hold 1e18 exactly. UTC may be set back, but must rise here.
        self._first = readings[0]
        self._utc = np.maximum.accumulate([each.utc_ns - self._first.utc_ns for each in readings])
        ahead = [each.utc_ns - each.host_ns for each in readings]
        self._moved = np.array(ahead, dtype=np.int64) - ahead[0]

    @property
    def moved_ns(self) -> int:
        """Return the gain of UTC over the monotonic clock from the first to the last reading, in ns."""
        return int(self._moved[-1])

    def to_run_ns(self, utc_ns: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], ...]:
        """Convert timestamps to three arrays: the host's monotonic ns, the run's ns, and a bound of their error in ns.

        UTC is assumed to gain linearly between two readings; otherwise the error is at most the gain. If UTC was set
        back, a timestamp may belong to two instants, and the bound covers both.
        """
        since = utc_ns - self._first.utc_ns
        gained = np.rint(np.interp(since, self._utc, self._moved)).astype(np.int64)
        host_ns = self._first.host_ns + since - gained
        steps = np.diff(self._moved, prepend=self._moved[0], append=self._moved[-1])
        uncertain = np.abs(steps)[np.searchsorted(self._utc, since, side="right")]
        if steps.min() < -UTC_STEP_NS:
            uncertain = np.full(len(since), np.ptp(self._moved))
        bound_ns = self._clock_log.bound_ns(self._host, host_ns) + uncertain
        return host_ns, self._clock_log.on_run(self._host, host_ns), bound_ns


def _when(clock_log: ClockLog, host: str, host_ns: int) -> dict[str, int]:
    at = np.array([host_ns], dtype=np.int64)
    bound_ns = int(clock_log.bound_ns(host, at)[0])
    return {"host_ns": host_ns, "controller_ns": int(clock_log.on_run(host, at)[0]), "offset_bound_ns": bound_ns}


def _capture_row(capture: NicCapture, totals: Totals, clock: HostUtc) -> dict[str, Any]:
    written = capture.counts["captured"]
    return {
        "device": capture.device,
        "files": len(capture.files),
        "file_bytes": sum(path.stat().st_size for path in capture.files),
        **capture.counts,
        "overwritten": None if written is None else max(0, written - totals.packets),
        "decoded": totals.packets,
        "truncated": totals.truncated,
        "malformed": totals.malformed,
        "not_ip": totals.not_ip,
        "undecoded_protocols": json.dumps(totals.undecoded_protocols),
        "utc_moved_ns": clock.moved_ns,
    }
