# SPDX-License-Identifier: Apache-2.0
"""The common parts of every page: the run, its fidelity, its settings, its invalid trials."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from analysis.expectations.results import DisturbedTrial, InvalidTrial, Summary
from analysis.reading import applied_settings as settings
from analysis.reading.cells import CellTrials, cells_of
from analysis.reading.data import iterations
from analysis.reading.machines import AGREE, Machines, ReferenceTrial, read_machines
from analysis.render.page import Html, bold_heading, fill_template, paragraph, render_part, table_html
from analysis.render.tables import Cell, Column, Table, one_section
from analysis.reports.outcome import outcome_html
from roundabout.store import Run
from roundabout.store.trial_states import DISTURBED

AUTHORS = "The Roundabout authors"
FACT_NAMES = "Parameters of transports: requested in the papers' units → on hosts, in theirs"
Facts = Iterable[tuple[str, str]]


def page_header(run: Run, results: Summary) -> Html:
    """Return the page's head: the experiment, the run, its fidelity, its outcome, and its disturbed trials."""
    experiment = run.manifest["experiment"]
    count = experiment["repetitions"]
    facts = [
        results.experiment,
        experiment.get("source"),
        f"{count} repetition{'' if count == 1 else 's'}",
        results.run,
    ]
    lead = " · ".join(fact for fact in facts if fact)
    header = fill_template("header", fidelity=results.testbed.fidelity, about=experiment["about"], lead=lead)
    return header + outcome_html(results) + disturbed_trials(results.disturbed_trials)


def disturbed_trials(trials: Sequence[DisturbedTrial]) -> Html:
    """Return a warning about disturbed trials with a table of them; nothing if there are none."""
    counted = [each for each in trials if each.counted]
    if not trials:
        return Html("")
    columns = (
        *(Column("disturbed trial", kind="words"), Column("key", kind="code"), Column("may be off by", ".1%")),
        *(Column("counts", kind="words"), Column("why", kind="words")),
    )
    rows = (
        (Cell(each.name), Cell(each.key), Cell(each.effect), Cell("yes" if each.counted else "no"), Cell(each.reason))
        for each in trials
    )
    warning = "Disturbed trials are left out, because each of their cells has a valid trial."
    if counted:
        effect = max(each.effect for each in counted)
        warning = (
            f"{len(counted)} trials that count were disturbed by a lack of CPU time. Their cells are marked, intervals "
            f"of iteration times are wider by the estimated effect (up to {effect:.0%}), and verdicts on them are at "
            "most inconclusive."
        )
    return bold_heading(warning) + table_html(Table(columns, one_section(rows)))


def invalid_trials(trials: Sequence[InvalidTrial]) -> Html:
    """Return a list of the trials that count in no figure, with the reasons."""
    if not trials:
        return paragraph("No trial was invalid.")
    columns = Column("invalid trial", kind="words"), Column("key", kind="code"), Column("why", kind="words")
    return table_html(
        Table(columns, one_section((Cell(each.name), Cell(each.key), Cell(each.reason)) for each in trials))
    )


def fidelity_notes(results: Summary, run: Run) -> Html:
    """Return a paragraph on the fidelity of the figures and the testbed's limits, and the warnings about the trials."""
    warnings = (bold_heading(f"Warning: {text}.") for text in run.manifest.get("warnings", ()))
    return Html("").join([*warnings, render_part("fidelity", fidelity=results.testbed.fidelity)])


def headroom(run: Run) -> Html:
    """Return the most used CPU, the most stolen CPU and the trainers' largest lateness over the trials that count."""
    trials = run.table("trials")
    names = ("busy_max", "steal_max", "steal_mean", "late_p90_ms", "stalled_share")
    worst = {name: pc.max(trials[name]).as_py() for name in names}
    late_ms = worst["late_p90_ms"]
    feedback_us = [each for each in trials["feedback_us"].to_pylist() if each is not None]
    facts = [
        ("CPU, busiest second", _share(worst["busy_max"])),
        ("CPU stolen, worst second", _share(worst["steal_max"])),
        # Runs of earlier versions do not have these two.
        ("CPU stolen, whole trial", _share(worst["steal_mean"], "")),
        ("time in which a link stood still although packets waited", _share(worst["stalled_share"], "")),
        (
            "trainers' wake-ups, nine of ten iterations",
            "unknown" if late_ms is None else f"at most {late_ms:.2f} ms late",
        ),
        *((("from a mark to the cut of a rate, a trial's mean", _range(feedback_us)),) if feedback_us else ()),
    ]
    return render_part("facts", facts=facts)


def applied_settings(run: Run) -> Html:
    """Return a table of the transports' requested and applied parameters, with a warning for timers of equal effect."""
    values = settings.applied_parameters(run)
    timers = [
        f"{each.transport}: T of {each.requested:g} µs is {each.on_hosts:g} µs on hosts."
        for each in values
        if each.parameter == settings.TIMER and each.requested is not None
    ]
    reported = ((f"{each.transport} {each.parameter}", _describe_value(each)) for each in values)
    return Html("").join(
        [*map(paragraph, timers), *map(bold_heading, settings.timer_warnings(values)), _folded(FACT_NAMES, reported)]
    )


def _describe_value(each: settings.AppliedParameter) -> str:
    requested = "the testbed's own" if each.requested is None else _plain(each.requested)
    return f"{requested} → {_plain(each.on_hosts)}"


def _plain(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _citation(run: Run) -> str:
    """Return the citation of this run; CITATION.cff has that of the program."""
    sessions, experiment = run.manifest["sessions"], run.manifest["experiment"]
    code = sessions[-1]["code"] if sessions else {}
    revision = (code.get("revision") or "unknown")[:12] + ("-dirty" if code.get("dirty") else "")
    source = f" After {experiment['source']}." if experiment.get("source") else ""
    return f"{AUTHORS}: Roundabout, revision {revision}. Run {experiment['name']}/{run.id}.{source}"


def provenance(run: Run) -> Html:
    """Return where figures come from: sessions, testbed, machines, clock error, transports, hosts and programs."""
    manifest = run.manifest
    sessions = manifest["sessions"]
    changes = manifest["experiment"].get("set")
    trials = run.table("trials", valid_only=False)
    bound_ns = pc.max(iterations(run)["offset_bound_ns"]).as_py()
    facts = [
        ("run", render_part("code", text=run.id)),
        ("trials", f"{trials.num_rows} of {len(manifest['plan'])} done, {_count_states(trials)}"),
        *((("changed in its file", _pairs(changes)),) if changes else ()),
        *((f"session {number}", _session(session)) for number, session in enumerate(sessions, start=1)),
        ("testbed", _pairs(manifest["testbed"].get("identity", {}))),
        ("machines", render_part("lines", lines=_machines(read_machines(run)))),
        ("clocks", "" if bound_ns is None else f"hosts against the controller within {bound_ns / 1e3:.0f} µs"),
        ("transports", render_part("lines", lines=_transports(cells_of(run)))),
        ("cite as", _citation(run)),
    ]
    hosts = sessions[-1]["hosts"] if sessions else {}
    programs = manifest.get("artefacts", {})
    return (
        render_part("facts", facts=facts)
        + _folded("Hosts", ((host, _pairs(known)) for host, known in hosts.items()))
        + _folded(
            "Programs that measured, with SHA-256",
            ((path, render_part("code", text=digest)) for path, digest in programs.items()),
        )
    )


def _count_states(trials: pa.Table) -> str:
    valid, disturbed = (pc.sum(trials[name]).as_py() or 0 for name in ("valid", DISTURBED))
    return f"{valid} valid" + (f", {disturbed} disturbed" if disturbed else "")


def _folded(title: str, facts: Facts) -> Html:
    known = list(facts)
    return render_part("folded_facts", title=title, known=known) if known else Html("")


def _pairs(values: Mapping[str, Any]) -> Html:
    return render_part("pairs", pairs=values)


def _transports(cells: Sequence[CellTrials]) -> list[str]:
    """Return the settings of each variant's jobs, by levels only where they differ between them."""
    reported = defaultdict(set)
    for cell in cells:
        reported[cell.variant].add(cell.transports)
    names = (cell.variant if len(reported[cell.variant]) == 1 else cell.name for cell in cells)
    return list(dict.fromkeys(f"{name}: {cell.transports}" for name, cell in zip(names, cells, strict=True)))


def _machines(found: Machines) -> list[str]:
    """Return the machines that took part, and whether they agree; empty with one machine."""
    if len(found.trials) < 2:
        return []
    lines = [
        f"{name}: {count} trials; {', '.join(f'{fact} {value}' for fact, value in found.facts[name].items())}"
        for name, count in found.trials.items()
    ]
    alike = f"They differ in: {', '.join(found.differing)}." if found.differing else "They are alike in all of this."
    return [*lines, alike, *([_describe_reference(found.reference)] if found.reference else [])]


def _describe_reference(reference: ReferenceTrial) -> str:
    """Return one trial's times on each machine."""
    times = (
        f"{job} {', '.join(f'{ms:.1f} ms on {name}' for name, ms in each.items())}"
        for job, each in reference.median_ms.items()
    )
    verdict = "agree" if reference.largest_difference <= AGREE else "do not agree"
    return (
        f"One trial was measured on each ({reference.variant}, repetition {reference.repetition}; medians): "
        f"{'; '.join(times)}. They {verdict} within {AGREE:.0%}: {reference.largest_difference:.1%} apart."
    )


def _session(session: dict[str, Any]) -> Html:
    return fill_template(
        "session", started=session["started_utc"][:19], code=session["code"], controller=session["controller"]
    )


def _range(us: Sequence[float]) -> str:
    return f"{min(us):.1f} to {max(us):.1f} µs of the papers' time"


def _share(value: float | None, unknown: str = "unknown") -> str:
    return unknown if value is None else f"{value:.0%}"
