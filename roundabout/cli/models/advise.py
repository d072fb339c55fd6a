# SPDX-License-Identifier: Apache-2.0
"""`roundabout advise`: recommend which jobs of a cluster should share links, and with which time-shifts."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roundabout.cli.experiments.experiments import load_checked_experiment
from roundabout.cli.models.migration import MigrationOptions, parse_seconds, show_migration
from roundabout.cli.options import Json, Runs, check_capacity, check_output
from roundabout.core.errors import RoundaboutError, UsageError
from roundabout.spec.reader.yaml_source import dump
from roundabout.store import Run
from roundabout.store.files import write_text
from roundabout.terminal.advice_output import show_advice, show_step
from roundabout.terminal.execution import undo_when_ended

if TYPE_CHECKING:
    from analysis.advice.advice import JobGroup
    from analysis.advice.observed_jobs import ObservedJob

Observed = tuple["Sequence[ObservedJob]", Sequence[str], float]
"""The observed jobs, notes on their source, and the capacity of a link, Gbit/s."""
TABLES = (".csv", ".parquet", ".json")


class NoAdviceError(RoundaboutError):
    """Error for a source in which no job gets advice. The exit code is 1."""


def command(  # noqa: PLR0913, PLR0917 - one a command-line option
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN|FILE|URL]",
            help="A run in which each job ran alone; a table of byte counters (.csv, .parquet); the URL of a query to "
            "Prometheus, or its answer (.json). Omit it with --inventory.",
        ),
    ] = None,
    inventory: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Inventory of a rack whose hosts are sampled while jobs run.")
    ] = None,
    lasting: Annotated[str, typer.Option("--for", metavar="SECONDS", help="Duration of sampling a rack.")] = "60s",
    jobs: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Hosts of each job: YAML, or the output of `squeue --json`."),
    ] = None,
    capacity: Annotated[
        float | None, typer.Option(metavar="GBPS", help="Capacity of a link. Default: that of the run's bottleneck.")
    ] = None,
    links: Annotated[int, typer.Option(min=1, help="Rank the placements of all jobs on this number of links.")] = 2,
    placements: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Rank only these placements: YAML, name -> jobs of each link.")
    ] = None,
    page: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the advice as an HTML page.")] = None,
    check: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="For a run: also write an experiment that runs the pairs or --placements to test the predictions.",
        ),
    ] = None,
    migrate: Annotated[
        bool, typer.Option("--migrate", help="Recommend which running workers to swap between hosts, instead.")
    ] = False,
    topology: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE",
            help="For --migrate: hosts, cables and routes; also a topology.conf of Slurm or HyperNodes of Volcano. "
            "Default: those of the run.",
        ),
    ] = None,
    move: Annotated[
        str | None,
        typer.Option(metavar="SECONDS", help="For --migrate: time that a moved job stands still. Default: 30s."),
    ] = None,
    runs: Runs = Path("runs"),
    as_json: Json = False,
) -> None:
    """Recommend which jobs should share a link, their time-shifts and the gain, and which jobs to separate.

    Neither the run nor any host is changed. With --inventory, samplers run on the hosts. With --migrate, recommend
    swaps of running workers, with their gain and the time after which they pay. The exit status is 1 if no job gets
    advice.
    """
    from analysis.advice import advice, advice_tables  # noqa: PLC0415

    source = _source_of(source, inventory)
    is_run = inventory is None and _is_run(source)
    _check_options(capacity, page, check, is_run=is_run)
    migration = MigrationOptions(migrate, topology, move, capacity)
    migration.check(placements or check, is_run=is_run)
    given = migration.capacity_gbps
    with show_step() as report:
        observed, notes, capacity_gbps = _observe(source, inventory, jobs, given, lasting, runs, report)
    if migrate:
        # A run says itself where its jobs are.
        said = [*notes, *(note for job in observed for note in job.notes)]
        show_migration(observed, migration, source, (None if is_run else jobs, page, runs), said, as_json=as_json)
        _check_any_advice(source, observed)
        return
    candidates = advice.read_placements(placements, observed) if placements else advice.partitions(observed, links)
    with show_step() as report:
        found = advice.advise(observed, capacity_gbps, candidates, notes, report)
    if page:
        write_text(page, advice_tables.render_page(found, source))
    if check:
        met = [met for each in found.placements for met in each.job_groups] if placements else found.pairs
        _write_check(check, Run.open(source, runs), observed, met)
    written = {"page": page, "check": check and f"roundabout run {check}"}
    show_advice(
        advice_tables.record(found), advice_tables.tables(found), advice_tables.EXPLAINED, written, as_json=as_json
    )
    _check_any_advice(source, observed)


def _check_any_advice(source: str, observed: "Sequence[ObservedJob]") -> None:
    if not any(each.found for each in observed):
        raise NoAdviceError(f"{source}: no job gets advice; the reasons are in the table of jobs")


def _source_of(source: str | None, inventory: Path | None) -> str:
    """Return the name of the source that is read."""
    if (source is None) == (inventory is None):
        found = "neither" if source is None else "both"
        raise UsageError(f"found {found}, expected either a run, a file or a URL, or --inventory")
    return str(inventory) if source is None else source


def _check_options(capacity: float | None, page: Path | None, check: Path | None, *, is_run: bool) -> None:
    for option, path in (("--page", page), ("--check", check)):
        if path:
            check_output(option, path)
    if capacity is not None:
        check_capacity(capacity)
    if check and check.suffix != ".yaml":
        raise UsageError(f"--check: found '{check}', expected a name that ends in .yaml")
    if check and (capacity is not None or not is_run):
        found = "a capacity" if is_run else "counters, which have neither topology nor transport"
        raise UsageError(f"--check: found {found}, expected a run alone, whose jobs are played as they were")


def _is_run(source: str) -> bool:
    path = Path(source)
    return not (source.startswith(("http://", "https://")) or path.suffix.lower() in TABLES or path.is_file())


def _write_check(path: Path, run: Run, jobs: "Sequence[ObservedJob]", groups: "Sequence[JobGroup]") -> None:
    """Write the experiment that checks the advice."""
    from analysis.advice import advice_check  # noqa: PLC0415

    document = advice_check.experiment(path.stem, run, jobs, groups)
    write_text(path, dump(document, width=118))
    load_checked_experiment(str(path))


def _observe(  # noqa: PLR0913, PLR0917 - one an option
    source: str,
    inventory: Path | None,
    jobs: Path | None,
    capacity: float | None,
    lasting: str,
    runs: Path,
    report: Callable[[str], None],
) -> Observed:
    if inventory:
        return _observe_live(inventory, jobs, capacity, parse_seconds("--for", lasting), report)
    return _observe_stored(source, jobs, capacity, runs, report)


def _observe_stored(
    source: str, jobs: Path | None, capacity: float | None, runs: Path, report: Callable[[str], None]
) -> Observed:
    from analysis.advice import observed_jobs as observed, senders  # noqa: PLC0415

    if _is_run(source):
        found, bottleneck_gbps = observed.observe_run(Run.open(source, runs))
        return found, (), capacity or bottleneck_gbps
    if jobs is None or capacity is None:
        missing = "--jobs" if jobs is None else "--capacity"
        hint = "counters do not show the job of their bytes, nor the capacity of links"
        raise UsageError(f"{source}: found no {missing}, expected it", hint)
    return *observed.read_jobs(source, senders.read_senders(jobs), capacity, report), capacity


def _observe_live(
    path: Path, jobs: Path | None, capacity: float | None, seconds: float, report: Callable[[str], None]
) -> Observed:
    """Return the jobs observed now on a rack, by its samplers."""
    from analysis.advice import observed_jobs as observed, senders, tables  # noqa: PLC0415
    from roundabout.runner.trial.traffic_watch import sample_traffic  # noqa: PLC0415
    from roundabout.testbeds.rack.provider import RackProvider  # noqa: PLC0415

    if jobs is None:
        raise UsageError("--inventory: found no --jobs, expected it", "counters do not show the job of their bytes")
    rack = RackProvider(path)
    listed = senders.read_senders(jobs)
    sending = rack.resolve_host_names(listed.senders, str(jobs))
    undo_when_ended()
    names = sorted({host for hosts in sending.values() for host in hosts})
    with rack.read_only_session(f"advise-{os.getpid()}", names) as hosts:
        report(f"sampling for {seconds:g} s")
        table = sample_traffic(hosts, seconds)
    capacity_gbps = capacity or rack.payload_rate_gbps
    counters = tables.parse_table(table, str(path)).hosts
    return observed.observe_counters(counters, sending, capacity_gbps, report), listed.notes, capacity_gbps
