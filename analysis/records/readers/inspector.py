# SPDX-License-Identifier: Apache-2.0
"""Reader of the output of NCCL's profiler plugin Inspector for one process: JSON, one line a collective or message.

Source: plugins/profiler/inspector of NVIDIA/nccl (README.md, inspector_json.cc), 2.28.3 to 2.30.7; pull request 2359.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from analysis.records.call import Call, Kind, Record, RecordError
from analysis.records.fields import (
    JSON,
    MAX_WHOLE,
    FieldError,
    quote_value,
    require_list,
    require_mapping,
    require_text,
    require_whole,
)
from analysis.records.files import no_garbage_collection, open_record

NAME = "NCCL Inspector's log"
VERSIONS = ("v4.0", "v4.1", "v4.2", "v4.3", "v4.4")
COUNTED = ("v4.3", "v4.4")
"""Versions in which only a dump's first line names the communicator, with the number of lines that follow."""
KINDS: dict[str, Kind] = {
    "AllReduce": "all-reduce",
    "AllGather": "all-gather",
    "ReduceScatter": "reduce-scatter",
    "Broadcast": "broadcast",
    "Reduce": "reduce",
    "Send": "send",
    "Recv": "receive",
}
PER_RANK = ("all-gather", "reduce-scatter")
"""Kinds of collectives whose size in the log is one rank's part of the vector."""
COUNTS = {"coll_perf": "coll_records", "p2p_perf": "p2p_records", "proxy_trace": "proxy_records"}
OVERWRITTEN_HINT = (
    "record again with a larger NCCL_INSPECTOR_DUMP_COLL_RING_SIZE, and a shorter "
    "NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS"
)
UNREAD_HINT = "record with PyTorch Kineto, whose kernels have the sizes of these collectives"
RING_ALGORITHMS = ("RING", "TREE")
"""Algorithms of NCCL whose bytes the patterns `ring` and `tree` have. Others, such as NVLS, reduce within a switch."""
RERUN_HINT = "record again with NCCL_INSPECTOR_DUMP_VERBOSE=1 (docs/reference/record-formats.md has the other settings)"

Process = tuple[str, str, int]
"""Version of the format, host, process id."""
Member = tuple[str, int]
"""A communicator and the process's rank in it; a process with several GPUs has several such pairs."""


def recognizes(head: bytes) -> bool:
    """Recognize the format; see `formats.Format`."""
    return b'"inspector_output_format_version"' in head


def read(path: Path) -> Record:
    """Return the record in a log.

    Times are those of the CPU's callbacks, from the first channel's start to the last stop.

    Blank lines are skipped. Lines that are not JSON, and lines missing from the last dump, count as lost. Raises
    RecordError for an unknown version, a log without such times, and a wrong field.
    """
    log = _LogReader()
    number = 0
    with open_record(path) as file, no_garbage_collection():
        for number, line in enumerate(file, 1):
            try:
                log.add_line(number, line)
            except FieldError as error:
                raise RecordError(f"{path}, line {number}: {error}", log.hint) from error
    if not log.calls:
        why = f" ({' '.join(losses)})" if (losses := list(log.losses())) else ""
        raise RecordError(
            f"{path}: found no collective with times in {number} lines{why}, expected some", log.loss_hint()
        )
    return log.record(path)


class _LogReader:
    """The state of reading a log."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.hint: str | None = None
        self._process: Process | None = None
        self._named = False
        self._header: dict[str, Any] | None = None
        self._awaited: Counter[str] = Counter()
        self._numbers: dict[tuple[Member, str, str], list[int]] = {}
        self._dropped: dict[tuple[Member, str], int] = {}
        self._left_out: Counter[str] = Counter()
        self._algorithms: Counter[str] = Counter()
        self._untimed = 0
        self._cut = 0
        self._damaged = self._damaged_in_dump = self._first_damaged = 0
        self._orphans = 0

    def add_line(self, number: int, line: bytes) -> None:
        """Add one line. Raises FieldError, and says in `hint` what to do about it."""
        entry = _entry(line)
        if entry is not None:
            self._add_entry(entry)
        elif line.strip() and not line.endswith(b"\n"):
            self._cut += 1
        elif line.strip():
            self._first_damaged = self._first_damaged or number
            self._damaged += 1
            self._damaged_in_dump += 1

    def _add_entry(self, entry: dict[str, Any]) -> None:
        if "metadata" in entry:
            self._read_process(require_mapping(entry, "metadata"))
        if self._process is None:
            if not self._damaged:
                raise FieldError("field metadata: found none, expected it in the first line")
            self._orphans += 1
            return
        if "dump_stats" in entry:
            self._dump(require_mapping(entry, "header"), require_mapping(entry, "dump_stats"))
            return
        what = next((kind for kind in COUNTS if kind in entry), None)
        if what is None:
            raise FieldError(f"found fields {quote_value(', '.join(entry))}, expected one of {', '.join(COUNTS)}")
        header = self._counting_dump(what) if self._process[0] in COUNTED else require_mapping(entry, "header")
        if header is None:
            self._orphans += 1
        elif what != "proxy_trace":
            self._call(header, require_mapping(entry, what), what.removesuffix("_perf"))

    def _read_process(self, metadata: dict[str, Any]) -> None:
        found = (
            require_text(metadata, "inspector_output_format_version"),
            require_text(metadata, "hostname"),
            require_whole(metadata, "pid"),
        )
        if found == self._process:
            return
        if found[0] not in VERSIONS:
            known = ", ".join(VERSIONS)
            raise FieldError(
                f"field inspector_output_format_version: found {quote_value(found[0])}, expected one of {known}"
            )
        if self._process is not None:
            raise FieldError("found lines of another process, or version, than above, expected one a file")
        self._process = found

    def _dump(self, header: dict[str, Any], stats: dict[str, Any]) -> None:
        """Read the first line of a dump.

        The calls that the communicator has lost, and the number of lines that follow.
        """
        self._end_dump()
        member = _member(header)
        for sort in ("coll", "p2p"):
            self._dropped[member, sort] = require_whole(stats, f"{sort}_dropped_total")
        self._header = header
        counts = {what: require_whole({count: 0} | stats, count) for what, count in COUNTS.items()}
        if self._process is not None and self._process[0] in COUNTED:
            self._awaited = Counter(counts)

    def _end_dump(self) -> None:
        """End a dump, which must have as many lines as it states, except for damaged ones. Raises FieldError."""
        if (missing := self._awaited.total()) > self._damaged_in_dump:
            raise FieldError(f"found a dump that lacks {missing} of its lines, expected as many as it counts")
        self._damaged_in_dump = 0

    def _counting_dump(self, what: str) -> dict[str, Any] | None:
        """Return the header of the dump that a line is of; None if a damaged line may have been that header."""
        if self._header is None or not self._awaited[what]:
            if self._damaged_in_dump:
                return None
            raise FieldError(f"found a {what} more than the dump counts, expected a dump_stats before it")
        self._awaited[what] -= 1
        return self._header

    def _call(self, header: dict[str, Any], perf: dict[str, Any], sort: str) -> None:
        member, ranks = _member(header), require_whole(header, "n_ranks", 1)
        self._named = self._named or "comm_name" in header
        name = require_text(perf, sort)
        numbered = name if sort == "coll" else ""  # messages are counted together, whichever way they go
        self._numbers.setdefault((member, sort, numbered), []).append(require_whole(perf, f"{sort}_sn"))
        kind = KINDS.get(name)
        if kind is None:
            self._left_out[name] += 1
            return
        if "event_trace_ts" not in perf:
            self.hint = RERUN_HINT
            raise FieldError("field event_trace_ts: found none, expected it: nothing else says when a collective began")
        times_us = _times_us(require_mapping(perf, "event_trace_ts"))
        if times_us is None:
            self._untimed += 1
            return
        algorithm = perf.get("coll_algo")
        if kind == "all-reduce" and isinstance(algorithm, str) and algorithm not in RING_ALGORITHMS:
            self._algorithms[algorithm] += 1
        peer = require_whole(perf, "p2p_peer") if sort == "p2p" else None
        if max(member[1], peer or 0) >= ranks:
            raise FieldError(
                f"found rank {member[1]} and peer {quote_value(peer)}, expected less than n_ranks, {ranks}"
            )
        self.calls.append(
            Call(
                kind=kind,
                group=member[0],
                number=require_whole(perf, "coll_sn") if sort == "coll" else None,
                rank=member[1],
                ranks=ranks,
                payload_bytes=_payload_bytes(perf, sort, ranks if kind in PER_RANK else 1),
                begin_ns=times_us[0] * 1000,
                end_ns=times_us[1] * 1000,
                peer=peer,
                is_tree=kind == "all-reduce" and algorithm == "TREE",
                hosts=require_whole(header, "nnodes", 1, ranks) if "nnodes" in header else None,
            )
        )

    def record(self, path: Path) -> Record:
        """Return the record, when all lines are read."""
        assert self._process is not None
        return Record(
            path=path,
            host=self._process[1],
            rank=None,
            world=None,
            calls=tuple(sorted(self.calls, key=lambda call: (call.begin_ns, call.end_ns))),
            members={},
            lost=self._lost() + self._untimed + self._left_out.total() + self._missing() + self._orphans,
            losses=tuple(self.losses()),
            hint=self.loss_hint(),
            notes=tuple(self._notes()),
        )

    def _lost(self) -> int:
        """Return how many calls were dropped, if dumps count them, or else how many numbers are left out.

        A damaged line leaves a gap in the numbers, unless it was the first or the last of its kind.
        """
        gaps = self._gaps()
        if self._dropped:
            return sum(self._dropped.get(key, gaps[key]) for key in gaps.keys() | self._dropped.keys()) + self._damaged
        return max(gaps.total(), self._damaged)

    def _missing(self) -> int:
        """Return how many lines the end of the file lacks."""
        return max(self._awaited.total() - self._damaged_in_dump, 0) + self._cut

    def _gaps(self) -> Counter[tuple[Member, str]]:
        """Return the counts of missing numbers between the first and the last of a kind."""
        gaps: Counter[tuple[Member, str]] = Counter()
        for (member, sort, _), numbers in self._numbers.items():
            gaps[member, sort] += max(numbers) - min(numbers) + 1 - len(set(numbers))
        return gaps

    def loss_hint(self) -> str | None:
        """Return how to record most of the lost calls; no setting keeps calls without times, or damaged lines."""
        counts = {OVERWRITTEN_HINT: self._lost() - self._damaged, UNREAD_HINT: self._left_out.total()}
        hint = max(counts, key=lambda each: counts[each])
        return hint if counts[hint] > self._untimed + self._damaged + self._missing() + self._orphans else None

    def _notes(self) -> list[str]:
        notes = ["Begin and end are callbacks on the CPU, not the GPU's own (0.4 ms apart in its project's example)."]
        if self._algorithms:
            kinds = ", ".join(f"{count} {quote_value(name)}" for name, count in sorted(self._algorithms.items()))
            notes.append(f"All-reduces of other algorithms than rings and trees are taken for rings: {kinds}.")
        assert self._process is not None
        if not self._named and self._process[0] == "v4.0":
            notes.append(
                "NCCL before 2.30 records the last collective of a communicator at each dump only, and no messages."
            )
        elif unrecorded := sum(max(gap - self._dropped.get(key, 0), 0) for key, gap in self._gaps().items()):
            notes.append(
                f"{unrecorded} were not recorded, small ones above all: NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES=0 keeps"
                " those below 8192 bytes, NCCL_INSPECTOR_REQUIRE_KERNEL_TIMING=0 those without the GPU's time."
            )
        return notes

    def losses(self) -> Iterator[str]:
        """Yield a sentence for each loss."""
        if dropped := sum(self._dropped.values()):
            yield f"{dropped} were overwritten before a dump: NCCL_INSPECTOR_DUMP_COLL_RING_SIZE keeps more."
        elif gaps := self._gaps().total():
            yield f"{gaps} are missing by their numbers (coll_sn, p2p_sn), between the first and the last of a kind."
        if self._left_out:
            kinds = ", ".join(f"{count} {quote_value(name)}" for name, count in sorted(self._left_out.items()))
            yield f"Left out, as their sizes are not documented: {kinds}."
        if self._untimed:
            yield f"{self._untimed} have no kernel's times, or end before they begin, and are left out."
        if self._damaged:
            yield f"{self._damaged} lines are no JSON objects and are left out, line {self._first_damaged} first."
        if self._orphans:
            yield f"{self._orphans} lines belong to a dump whose first line is damaged, and are left out."
        if missing := self._missing():
            yield f"The file ends early: at least {missing} lines are missing."


def _entry(line: bytes) -> dict[str, Any] | None:
    """Return the object of a line, or None if it has none."""
    try:
        entry = JSON.decode(line.decode(errors="replace"))
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def _member(header: dict[str, Any]) -> Member:
    return require_text(header, "id"), require_whole(header, "rank")


def _payload_bytes(perf: dict[str, Any], sort: str, parts: int) -> int:
    payload_bytes = require_whole(perf, f"{sort}_msg_size_bytes") * parts
    if payload_bytes > MAX_WHOLE:
        raise FieldError(f"field {sort}_msg_size_bytes: found more than 2^53 bytes of all ranks, expected less")
    return payload_bytes


def _times_us(trace: dict[str, Any]) -> tuple[int, int] | None:
    """Return begin and end of its kernels, on all channels together.

    Return None if no channel has both times (0: none), or if one ends before it begins, as when the clock was set.
    """
    begins, ends = [], []
    for event in require_list(trace, "kernel_events"):
        if not isinstance(event, dict):
            raise FieldError(f"field kernel_events: found {quote_value(event)}, expected objects")
        begin, end = require_whole(event, "kernel_start_ts"), require_whole(event, "kernel_stop_ts")
        if begin and end:
            begins.append(begin)
            ends.append(end)
    is_ordered = all(begin <= end for begin, end in zip(begins, ends, strict=True))
    return (min(begins), max(ends)) if begins and is_ordered else None
