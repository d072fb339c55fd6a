# SPDX-License-Identifier: Apache-2.0
"""`roundabout advise --migrate`: recommend swaps of running workers."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from roundabout.core.errors import UsageError
from roundabout.spec import Topology, TrialSpec, load_topology
from roundabout.spec.cluster import MOVE_S
from roundabout.store import Run
from roundabout.store.files import write_text
from roundabout.terminal.advice_output import show_advice

if TYPE_CHECKING:
    from analysis.advice.observed_jobs import ObservedJob
    from roundabout.models.cluster.state import Placements


def parse_seconds(option: str, text: str) -> float:
    """Return the seconds that an option gives, as in 60s. Raises UsageError."""
    found = re.fullmatch(r"(\d{1,5}(?:\.\d+)?)s?", text)
    if not found or float(found[1]) <= 0:
        raise UsageError(f"{option}: found '{text}', expected seconds, as in 60s")
    return float(found[1])


@dataclass(frozen=True)
class MigrationOptions:
    """The options of `--migrate`, and the capacity in Gbit/s.

    `topology` is a name or a file, and `move` the time that a moved job stands still, as text.
    """

    migrate: bool
    topology: str | None
    move: str | None
    capacity: float | None

    def check(self, other: Path | None, *, is_run: bool) -> None:
        """Raise UsageError for options that do not go together; `other` is one of the other kinds of advice."""
        if not self.migrate:
            for name, value in (("topology", self.topology), ("move", self.move)):
                if value is not None:
                    raise UsageError(f"--{name}: found no --migrate, expected it")
            return
        if other:
            raise UsageError("--migrate: found --placements or --check beside it, expected neither")
        if self.topology is None and not is_run:
            hint = "name one, or write one with `roundabout new --from`; its routing is the map from flows to cables"
            raise UsageError("--migrate: found no --topology, expected it for counters", hint)

    @property
    def capacity_gbps(self) -> float | None:
        """Return the capacity that is given, or the payload rate of the topology's bottleneck."""
        from analysis.advice.topologies import scheduler_of  # noqa: PLC0415

        if self.capacity is not None or not self.topology:
            return self.capacity
        if scheduler_of(self.topology):
            hint = "give the payload rate of a cable: a scheduler's file has no rates"
            raise UsageError(f"--topology {self.topology}: found no --capacity, expected it", hint)
        return load_topology(self.topology).bottleneck.payload_rate_gbps

    @property
    def move_s(self) -> float:
        """Return the time for which a moved job stands still, s."""
        return MOVE_S if self.move is None else parse_seconds("--move", self.move)


def show_migration(  # noqa: PLR0913 - one for each input
    jobs: "Sequence[ObservedJob]",
    options: MigrationOptions,
    source: str,
    files: tuple[Path | None, Path | None, Path],
    notes: Sequence[str],
    *,
    as_json: bool,
) -> None:
    """Show advice on swaps, after `notes` on the source.

    `files` are the hosts of each job, the page to write, and the folder of runs.
    """
    from analysis.advice import advice_tables, migration_tables  # noqa: PLC0415
    from analysis.advice.migration_advice import advise_migration  # noqa: PLC0415

    hosts_file, page, runs = files
    topology, placed, topology_notes = _placements(source, options, hosts_file, runs)
    notes = [*notes, *topology_notes]
    found = advise_migration(jobs, placed, topology, options.move_s)
    if page:
        write_text(page, migration_tables.render_page(found, source))
    show_advice(
        migration_tables.record(found) | {"notes": notes},
        [*advice_tables.note_tables(notes), *migration_tables.tables(found)],
        migration_tables.EXPLAINED,
        {"page": page},
        as_json=as_json,
    )


def _placements(
    source: str, options: MigrationOptions, hosts: Path | None, runs: Path
) -> tuple[Topology, "Placements", Sequence[str]]:
    """Return the topology, the hosts of each job, and notes on the topology. A run has both, unless they are given."""
    from analysis.advice.senders import read_senders  # noqa: PLC0415
    from analysis.advice.topologies import read_topology  # noqa: PLC0415

    placed: Placements
    if hosts:
        placed = read_senders(hosts).senders
    else:
        specs = [TrialSpec.model_validate(trial["spec"]) for trial in Run.open(source, runs).trials()]
        placed = {job: tuple(dict.fromkeys(each.workers)) for spec in specs for job, each in spec.jobs.items()}
        if options.topology is None:
            return specs[-1].topology, placed, ()
    assert options.topology is not None
    known = {host for each in placed.values() for host in each}
    topology, notes = read_topology(options.topology, known, options.capacity)
    return topology, placed, notes
