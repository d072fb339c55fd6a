# SPDX-License-Identifier: Apache-2.0
"""Reader of the output of nccl-tests' programs with -J: the speed of collectives of some sizes on a fabric.

Source: NVIDIA/nccl-tests v2.17.3 to v2.19.6, src/util.cu, src/common.cu and doc/PERFORMANCE.md.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.records.call import RecordError
from analysis.records.fields import (
    JSON,
    FieldError,
    quote_value,
    require_list,
    require_mapping,
    require_real,
    require_text,
    require_whole,
)
from analysis.records.files import open_record

NAME = "nccl-tests' JSON"
VERSIONS = (1, 2, 3)
"""Known versions of the output: 1 since v2.17.3, 2 since v2.19.2 (has times of iterations), 3 since v2.19.6 (without
the times of the first iterations).
"""
JSON_START = re.compile(rb'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"(start_time|args)"')
PLACES = ("out_of_place", "in_place")
GBPS_OF_GBS = 8.0
USUAL_SETTINGS: dict[str, Any] = {"aggregated_iterations": 1, "graph": 0, "blocking_collectives": "false"}
"""Settings of the configuration that change what a time is of, with their defaults."""
AVERAGE = (("average_bus_bandwidth", "bandwidth"), ("average_bus_bandwidith", "bandwidith"))
"""Names of the mean bandwidth, as spelled since v2.17.9 and before."""


@dataclass(frozen=True, slots=True)
class SizeResult:
    """The result for one size, in place or not: mean time of an operation, us, and rates, Gbit/s.

    `checked` is True if the program verified the results. `dtype` and `operator` are the type of the numbers and the
    reduction, `none` for a collective that reduces nothing; `root` is that of a broadcast or reduce.

    `size_bytes` is the size of the whole vector, as in `Call.payload_bytes`. `bus_gbps` is the rate of each rank's
    link.
    """

    size_bytes: int
    in_place: bool
    time_us: float
    algorithm_gbps: float
    bus_gbps: float
    checked: bool
    dtype: str | None = None
    operator: str | None = None
    root: int | None = None


@dataclass(frozen=True, slots=True)
class Fabric:
    """A fabric's speed of one collective, such as `all_reduce`, among `ranks` on `hosts`; rates in Gbit/s.

    `group_sizes` are the ranks of each communicator: several run the collective at once with NCCL_TESTS_SPLIT.
    `average_bus_gbps` is the program's own mean over sizes, in place and not. Environment and arguments are left out,
    because they may hold secrets.
    """

    path: Path
    collective: str
    nccl: str | None
    ranks: int | None
    group_sizes: tuple[int, ...]
    hosts: tuple[str, ...]
    measured: tuple[SizeResult, ...]
    average_bus_gbps: float
    notes: tuple[str, ...] = ()


def recognizes(head: bytes) -> bool:
    """Return True if a file that begins with `head` is JSON of nccl-tests."""
    return JSON_START.match(head) is not None


def read(path: Path) -> Fabric:
    """Return the fabric's speed in a file of nccl-tests.

    Raises RecordError for an unknown version, an aborted run, wrong results (whose rates mean nothing), and times of
    the CPU alone (option -C).
    """
    with open_record(path) as file:
        content = file.read()
    try:
        return _fabric(path, JSON.decode(content.decode(errors="replace")))
    except FieldError as error:
        raise RecordError(f"{path}: {error}") from error
    except (ValueError, RecursionError):
        expected = "expected it whole: the program closes it at its end"
        raise RecordError(f"{path}: found no JSON, or one that was cut off, {expected}") from None


def _fabric(path: Path, entry: Any) -> Fabric:
    if not isinstance(entry, dict) or entry.get("version") not in VERSIONS:
        version = entry.get("version") if isinstance(entry, dict) else entry
        raise FieldError(
            f"field version: found {quote_value(version)}, expected one of {', '.join(map(str, VERSIONS))}"
        )
    rows = require_list(entry, "results")
    measured = tuple(each for row in rows for each in _measured(row))
    if not measured:
        raise FieldError("field results: found no size, expected some")
    _check_results(entry)
    hosts, group_sizes = _hosts_and_groups(require_mapping(entry, "config")) if "config" in entry else ((), ())
    unchecked = sum(not each.checked for each in measured)
    return Fabric(
        path=path,
        collective=_collective(require_list(entry, "args")),
        nccl=_release(require_whole(entry, "nccl_version")) if "nccl_version" in entry else None,
        ranks=sum(group_sizes) or None,
        group_sizes=group_sizes,
        hosts=hosts,
        measured=measured,
        average_bus_gbps=_average_gbps(entry),
        notes=tuple(_notes(entry.get("config", {}), unchecked, len(measured))),
    )


def _notes(config: dict[str, Any], unchecked: int, measured: int) -> Iterator[str]:
    if unchecked:
        yield f"Results of {unchecked} of {measured} were not checked."
    unusual = {name: config[name] for name, usual in USUAL_SETTINGS.items() if config.get(name, usual) != usual}
    if unusual:
        settings = ", ".join(f"{name} is {quote_value(value)}" for name, value in unusual.items())
        yield f"Operations were not run one by one, as they are by default: {settings}."


def _measured(row: Any) -> list[SizeResult]:
    """Return a size's results; a place that was not run is null."""
    found = []
    for way in PLACES:
        if require_mapping({"row": row}, "row").get(way) is None:
            continue
        figures = require_mapping(row, way)
        if "cpu_time" in figures:
            raise FieldError("field cpu_time: found the CPU's time (-C), expected time: that of the operation")
        wrong = None if figures.get("nwrong") is None else require_real(figures, "nwrong")
        if wrong:
            raise FieldError(f"field nwrong: found {wrong:.0f} of size {require_whole(row, 'size')} {way}, expected 0")
        found.append(
            SizeResult(
                size_bytes=require_whole(row, "size"),
                in_place=way == "in_place",
                time_us=require_real(figures, "time"),
                algorithm_gbps=GBPS_OF_GBS * require_real(figures, "alg_bw"),
                bus_gbps=GBPS_OF_GBS * require_real(figures, "bus_bw"),
                checked=wrong is not None,
                dtype=_optional_text(row, "type"),
                operator=_optional_text(row, "redop"),
                root=_root(row),
            )
        )
    return found


def _optional_text(row: dict[str, Any], name: str) -> str | None:
    return require_text(row, name) if name in row else None


def _root(row: dict[str, Any]) -> int | None:
    """Return the root, which is text; -1 stands for none."""
    text = (_optional_text(row, "root") or "").strip()
    if not re.fullmatch(r"-1|\d{0,9}", text, re.ASCII):
        raise FieldError(f"field root: found {quote_value(text)}, expected a rank, or -1")
    return int(text) if text not in ("", "-1") else None


def _check_results(entry: dict[str, Any]) -> None:
    """Check that no result was out of bounds; booleans are text."""
    bounds = require_mapping(entry, "out_of_bounds")
    if require_text(bounds, "okay") != "true":
        raise FieldError(f"field out_of_bounds: found {quote_value(bounds.get('count'))} wrong values, expected 0")


def _average_gbps(entry: dict[str, Any]) -> float:
    for outer, inner in AVERAGE:
        if outer in entry:
            return GBPS_OF_GBS * require_real(require_mapping(entry, outer), inner)
    raise FieldError(f"field {AVERAGE[0][0]}: found none, expected it at the end")


def _collective(args: list[Any]) -> str:
    """Return its name by the program's, the first of its arguments; the others are ignored."""
    program = require_text({"args[0]": args[0] if args else None}, "args[0]")
    return program.rpartition("/")[2].removesuffix("_perf")


def _hosts_and_groups(config: dict[str, Any]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the hosts, and the number of ranks of each group.

    `devices` has one entry a process, whose ranks are threads times GPUs, and which is in one group.
    """
    devices = require_list(config, "devices")
    if not devices:
        raise FieldError("field devices: found none, expected one a process")
    hosts = tuple(dict.fromkeys(require_text(device, "hostname") for device in devices))
    ranks = require_whole(config, "nthreads", 1) * require_whole(config, "ngpus", 1)
    processes = Counter(require_whole(device, "group") if "group" in device else 0 for device in devices)
    return hosts, tuple(ranks * processes[group] for group in sorted(processes))


def _release(code: int) -> str:
    """Return NCCL's release by its number (NCCL_VERSION of nccl.h): 23007 is 2.30.7."""
    major, rest = divmod(code, 10_000 if code >= 10_000 else 1000)
    return f"{major}.{rest // 100}.{rest % 100}"
