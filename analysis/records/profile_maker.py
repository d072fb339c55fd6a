# SPDX-License-Identifier: Apache-2.0
"""A profile from a cluster's records of a job, or a fabric's figures."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from roundabout.core.errors import UsageError
from roundabout.spec import EXPERIMENTS, Profile
from roundabout.spec.reader.yaml_source import dump, shown_path
from roundabout.store import Run, Units
from roundabout.store.files import make_directory, return_to_caller, write_text
from roundabout.store.manifest import NAME as MANIFEST

if TYPE_CHECKING:
    from analysis.records.call import Record
    from analysis.records.profile import RecordedProfile
    from analysis.records.readers.nccl_tests import Fabric, SizeResult
    from analysis.statistics.phases import Estimate

UNNAMED = "recorded"
MAX_RANKS = 8
"""Largest number of ranks that the screen lists one by one."""
NEAR_BEST = 0.9
NOT_STORED = "profile  not stored; --save NAME stores it as profiles/NAME.yaml"


def store_profile(path: Path, profile: Profile) -> None:
    """Write a profile's file and, if it is missing, its folder. Raises StoreError."""
    make_directory(path.parent)
    write_text(path, profile_yaml(profile))
    return_to_caller(path)


def report_records(named: Sequence[Path], target: Path | None, console: Console, *, as_json: bool) -> None:
    """Print the content of record files and of folders of them, as JSON with `as_json`, and store the profile.

    A file that was named must be a record; in a folder, others are left out. Raises UsageError for files of jobs beside
    files of a fabric, for a `target` without a job, and for a folder without records.
    """
    from analysis.records.formats import fabric_of  # noqa: PLC0415 - `--help` need not wait for it

    paths = [file for each in named for file in (_records_in(each, console) if each.is_dir() else [each])]
    fabrics = [fabric_of(path) for path in paths]
    measured = [each for each in fabrics if each is not None]
    if not measured:
        _report_job(paths, target, console, as_json)
        return
    if len(measured) < len(paths):
        other = next(path for path, fabric in zip(paths, fabrics, strict=True) if fabric is None)
        what = f"{other}: found the record of a job beside {measured[0].path}, which says what a fabric gives"
        raise UsageError(f"{what}, expected one or the other")
    if target:
        what = f"{measured[0].path}, which says what a fabric gives, and no job's iterations"
        raise UsageError(f"--save: found {what}, expected records of a job")
    for fabric in measured:
        show_fabric(fabric, console)
    if as_json:
        print(json.dumps([_fabric_json(each) for each in measured], indent=2))


def files_in(folder: Path) -> list[Path]:
    """Return the files in a folder, by name, without hidden ones. Raises UsageError if it cannot be read."""
    try:
        return sorted(each for each in folder.iterdir() if each.is_file() and not each.name.startswith("."))
    except OSError as error:
        raise UsageError(f"folder {folder} cannot be read: {error.strerror}") from error


def _records_in(folder: Path, console: Console) -> list[Path]:
    """Return the records in a folder, by name, without hidden files, and print the names of all others."""
    from analysis.records.formats import is_record  # noqa: PLC0415

    files = files_in(folder)
    found = [each for each in files if is_record(each)]
    others = ", ".join(each.name for each in files if each not in found)
    if not found:
        files_found = f"none in {others}" if others else "no files"
        hint = "name a folder that has one record a process"
        raise UsageError(f"profile records: folder {folder} has no records: found {files_found}", hint)
    if others:
        console.print(f"{folder}: left out, as they are no records: {others}", soft_wrap=True, highlight=False)
    return found


def _report_job(paths: Sequence[Path], target: Path | None, console: Console, as_json: bool) -> None:
    from analysis.records.profile import make_profile  # noqa: PLC0415

    run = _run_of(paths)
    units = Units.from_manifest(run.manifest["testbed"]) if run else None
    found = make_profile(paths, target.stem if target else UNNAMED, units)
    console.print(_records_table(found, run), _table(found), sep="\n", highlight=False)
    for sentence in found.caveats:
        console.print(Padding(Text(f"- {sentence}"), (0, 0)), highlight=False)
    _store(found.profile, target, console)
    if as_json:
        print(json.dumps(_json(found, run, target), indent=2))


def _run_of(paths: Sequence[Path]) -> Run | None:
    """Return the run whose trial recorded these, if they lie there: its bytes and times are those of a testbed."""
    found = {_manifest_above(path) for path in paths}
    if len(found) > 1:
        raise UsageError(f"found files of several runs, or of one and of none: {', '.join(map(str, paths))}")
    folder = found.pop()
    return Run(folder) if folder else None


def _manifest_above(path: Path) -> Path | None:
    above = path.resolve().parents[2:5]
    return next((folder for folder in above if (folder / MANIFEST).is_file()), None)


def profile_yaml(profile: Profile) -> str:
    """Return a profile as the YAML of a profile's file."""
    text = dump(profile.model_dump(mode="json", exclude_none=True), width=118)
    return f"# yaml-language-server: $schema={EXPERIMENTS / 'schema' / 'profile.json'}\n{text}"


def _records_table(found: "RecordedProfile", run: Run | None) -> Table:
    """Return a table of the records, a row a rank."""
    table = untitled_table(f"{found.format}: {len(found.job.records)} ranks")
    if run:
        testbed = run.manifest["testbed"]
        table.title = f"{table.title}; of run {run.id}, whose {testbed['kind']} is 1:{testbed['scale']:g}"
    for heading in ("rank", "calls", "lost", "steps", "clock, ms"):
        table.add_column(heading, justify="right")
    table.add_column("file", overflow="fold")
    for rank, record in enumerate(found.job.records[:MAX_RANKS]):
        counts = (len(record.calls), record.lost, len(record.steps_ns) or "")
        ahead = f"{(found.job.ahead_ns[rank]) / 1e6:+.3f}" if abs(found.job.ahead_ns[rank]) < 1e12 else "another epoch"
        table.add_row(*map(str, (rank, *counts)), ahead, Text(record.path.name))
    if left := found.job.records[MAX_RANKS:]:
        table.add_row("...", str(sum(len(each.calls) for each in left)), str(sum(each.lost for each in left)))
    return table


def _table(found: "RecordedProfile") -> Table:
    """Return a table of the findings, a row a phase, with its groups."""
    timeline = found.timeline
    table = untitled_table(
        f"Found in them: {timeline.found.iterations} like iterations in {timeline.used_ms / 1e3:.1f} s"
    )
    table.add_column("")
    for heading in ("lasts, ms", "sends, MB", "Gbit/s"):
        table.add_column(heading, justify="right")
    table.add_column("what", overflow="fold")
    for phase, parts in zip(timeline.found.phases, timeline.parts, strict=True):
        sends = [estimate_cell(phase.bytes, 1, 1e6), estimate_cell(phase.gbps, 2)] if phase.sends else ["", ""]
        what = [
            " and ".join(part.family.kinds) + _describe_groups(part.family.groups, found.job.records) for part in parts
        ]
        kind = "send" if phase.sends else "compute"
        table.add_row(kind, estimate_cell(phase.duration_ms, 1), *sends, "; ".join(what))
    steps = "" if found.steps_ms is None else f"steps named: {found.steps_ms:.1f}"
    table.add_row("iteration", estimate_cell(timeline.found.period_ms, 1), "", "", steps, style="bold")
    return table


def _describe_groups(groups: Sequence[Sequence[int]], records: "Sequence[Record]") -> str:
    if len(groups) == 1 and len(groups[0]) == len(records):
        return ""
    return f", {len(groups)} of {len(groups[0])} ranks"


def estimate_cell(estimate: "Estimate", digits: int, unit: float = 1.0) -> Text:
    """Return a figure with the distance to the farther end of its interval, such as `12.3 ±0.4`."""
    most = max(estimate.value - estimate.low, estimate.high - estimate.value)
    return Text.assemble(f"{estimate.value / unit:.{digits}f} ", (f"±{most / unit:.{digits}f}", "dim"))


def untitled_table(title: str) -> Table:
    """Return an empty table with its title above, aligned to the left."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title_justify="left", title_style="bold")
    table.title = title
    return table


def _json(found: "RecordedProfile", run: Run | None, target: Path | None) -> dict[str, Any]:
    records = [
        {"file": str(each.path), "rank": rank, "calls": len(each.calls), "lost": each.lost, "ahead_ns": ahead_ns}
        for rank, (each, ahead_ns) in enumerate(zip(found.job.records, found.job.ahead_ns, strict=True))
    ]
    return {
        "format": found.format,
        "records": records,
        "run": run.id if run else None,
        "found": asdict(found.timeline.found),
        "steps_ms": found.steps_ms,
        "lost_share": found.job.lost_share,
        **profile_json(found.profile, found.caveats, target),
    }


def report_profile(
    profile: Profile, title: str, sentences: Sequence[str], target: Path | None, console: Console
) -> None:
    """Print a computed profile, with sentences on what it lacks, and store it if there is a `target`."""
    console.print(_profile_table(profile, title), highlight=False)
    for sentence in sentences:
        console.print(Padding(Text(f"- {sentence}"), (0, 0)), highlight=False)
    _store(profile, target, console)


def profile_json(profile: Profile, sentences: Sequence[str], target: Path | None) -> dict[str, Any]:
    """Return the profile, its caveats and where it is stored, as commands print them with --json."""
    return {
        "caveats": list(sentences),
        "profile": profile.model_dump(mode="json", exclude_none=True),
        "saved": str(target) if target else None,
    }


def _store(profile: Profile, target: Path | None, console: Console) -> None:
    """Store a profile if there is a `target`, and print where."""
    if target:
        store_profile(target, profile)
        console.print(f"profile  {shown_path(target)}", soft_wrap=True, highlight=False)
    else:
        console.print(NOT_STORED, highlight=False)


def _profile_table(profile: Profile, title: str) -> Table:
    """Return a table of a profile's phases, a row each."""
    table = untitled_table(title)
    table.add_column("")
    for heading in ("begins, ms", "lasts, ms", "sends, MB", "demand, Gbit/s"):
        table.add_column(heading, justify="right")
    begin_ms = 0.0
    for phase in profile.phases:
        sends = ["", ""] if phase.bytes is None else [f"{phase.bytes / 1e6:.1f}", f"{phase.demand_gbps:.2f}"]
        table.add_row(phase.name, f"{begin_ms:.3f}", f"{phase.duration_ms:.3f}", *sends)
        begin_ms += phase.duration_ms
    table.add_row("iteration", "", f"{profile.alone_ms:.3f}", f"{profile.comm_bytes / 1e6:.1f}", style="bold")
    return table


def show_fabric(fabric: "Fabric", console: Console) -> None:
    """Print a fabric's speed, a row for each size, and sentences on it."""
    hosts = f" on {len(fabric.hosts)} host{'s'[: len(fabric.hosts) - 1]}" if fabric.hosts else ""
    table = untitled_table("")
    table.title = Text(f"{fabric.collective}{describe_ranks(fabric)}{hosts} ({fabric.path.name})")
    for heading in ("size, MB", "time, ms", "algorithm, Gbit/s", "bus, Gbit/s", "in place", "type"):
        table.add_column(heading, justify="right")
    for each in fabric.measured:
        figures = (each.size_bytes / 1e6, each.time_us / 1e3, each.algorithm_gbps, each.bus_gbps)
        digits = (3, 3, 2, 2)
        shown_figures = (f"{figure:,.{places}f}" for figure, places in zip(figures, digits, strict=True))
        table.add_row(*shown_figures, "yes" if each.in_place else "no", Text(_describe_operation(each)))
    console.print(table, highlight=False)
    for sentence in _fabric_sentences(fabric):
        console.print(f"- {sentence}", highlight=False)


def describe_ranks(fabric: "Fabric") -> str:
    """Return the ranks of a fabric's measurement, as the end of a phrase: several groups run at once."""
    sizes = fabric.group_sizes
    if len(sizes) < 2:
        return f", {fabric.ranks} ranks" if fabric.ranks else ""
    return f", {len(sizes)} groups of {' and '.join(map(str, sorted(set(sizes))))} ranks at once"


def _describe_operation(result: "SizeResult") -> str:
    """Return the type of the numbers, the reduction if there is one, and the root if there is one."""
    parts = [result.dtype or "", result.operator if result.operator not in (None, "none") else ""]
    return " ".join([*filter(None, parts), *([f"root {result.root}"] if result.root is not None else [])])


def _smallest_fast_size(fabric: "Fabric") -> int | None:
    """Return the size, in bytes, from which on all reach `NEAR_BEST` of the best; None if the largest does not."""
    best = max(each.bus_gbps for each in fabric.measured)
    slow = [each.size_bytes for each in fabric.measured if each.bus_gbps < NEAR_BEST * best]
    return min((each.size_bytes for each in fabric.measured if each.size_bytes > max(slow, default=-1)), default=None)


def _fabric_sentences(fabric: "Fabric") -> Iterator[str]:
    best = max(each.bus_gbps for each in fabric.measured)
    near = _smallest_fast_size(fabric)
    reached = "not by the largest size" if near is None else f"from {near / 1e6:,.3f} MB on"
    yield f"The best bus bandwidth is {best:.2f} Gbit/s; {100 * NEAR_BEST:.0f} % of it is reached {reached}."
    if len(operations := sorted({_describe_operation(each) for each in fabric.measured})) > 1:
        yield f"The best is over several types, reductions or roots: {', '.join(operations)}."
    if len(fabric.group_sizes) > 1:
        yield "All groups share the fabric: each had these rates while the others sent, too."
    if len(fabric.hosts) == 1:
        yield "All ranks are on one host: no network carried this."
    yield "No profile comes of it: it has the rates of a fabric, and no iterations of a job."
    yield from fabric.notes


def _fabric_json(fabric: "Fabric") -> dict[str, Any]:
    return {**asdict(fabric), "path": str(fabric.path), "near_best_bytes": _smallest_fast_size(fabric)}
