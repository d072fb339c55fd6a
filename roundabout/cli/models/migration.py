# SPDX-License-Identifier: Apache-2.0
"""`roundabout advise --migrate`: recommend swaps of running workers."""

import re
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
    from collections.abc import Sequence

    from analysis.advice.observed_jobs import ObservedJob


def parse_seconds(option: str, text: str) -> float:
    """Return the seconds that an option gives, as in 60s. Raises UsageError."""
    found = re.fullmatch(r"(\d{1,5}(?:\.\d+)?)s?", text)
    if not found or float(found[1]) <= 0:
        raise UsageError(f"{option}: found '{text}', expected seconds, as in 60s")
    return float(found[1])


@dataclass(frozen=True)
class MigrationOptions:
    """The options of `--migrate`: a topology's name or file, and the time that a moved job stands still, as text."""

    migrate: bool
    topology: str | None
    move: str | None

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

    def capacity_gbps(self, given: float | None) -> float | None:
        """Return the capacity that is given, or the payload rate of the topology's bottleneck."""
        if given is None and self.topology:
            return load_topology(self.topology).bottleneck.payload_rate_gbps
        return given

    @property
    def move_s(self) -> float:
        """Return the time for which a moved job stands still, s."""
        return MOVE_S if self.move is None else parse_seconds("--move", self.move)


def show_migration(  # noqa: PLR0913 - one for each input
    jobs: "Sequence[ObservedJob]",
    options: MigrationOptions,
    source: str,
    files: tuple[Path | None, Path | None, Path],
    notes: "Sequence[str]",
    *,
    as_json: bool,
) -> None:
    """Show advice on swaps, after `notes` on the source.

    `files` are the hosts of each job, the page to write, and the folder of runs.
    """
    from analysis.advice import advice_tables, migration_tables  # noqa: PLC0415
    from analysis.advice.migration_advice import advise_migration  # noqa: PLC0415

    hosts_file, page, runs = files
    topology, placed = _placements(source, options.topology, hosts_file, runs)
    found = advise_migration(jobs, placed, topology, options.move_s)
    if page:
        write_text(page, migration_tables.render_page(found, source))
    show_advice(
        migration_tables.record(found) | {"notes": list(notes)},
        [*advice_tables.note_tables(notes), *migration_tables.tables(found)],
        migration_tables.EXPLAINED,
        {"page": page},
        as_json=as_json,
    )


def _placements(
    source: str, name: str | None, hosts: Path | None, runs: Path
) -> tuple[Topology, dict[str, tuple[str, ...]]]:
    """Return the topology, and the hosts of each job: of the file, or else as the run has them."""
    from analysis.advice.senders import read_senders  # noqa: PLC0415

    if hosts:
        assert name is not None
        return load_topology(name), {job: tuple(each) for job, each in read_senders(hosts).senders.items()}
    specs = [TrialSpec.model_validate(trial["spec"]) for trial in Run.open(source, runs).trials()]
    placed = {job: tuple(dict.fromkeys(each.workers)) for spec in specs for job, each in spec.jobs.items()}
    return load_topology(name) if name else specs[-1].topology, placed
