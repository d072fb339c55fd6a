# SPDX-License-Identifier: Apache-2.0
"""The tables of jobs under cross traffic, beside Salamy's figures."""

from collections.abc import Callable, Iterable, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from analysis.reading.disturbance import MARK, describe_effect, mark_name
from analysis.render import screen as on_screen
from analysis.render.tables import (
    TAIL,
    Cell,
    Column,
    Section,
    Table,
    format_interval,
    group_by_name,
    group_by_title,
    one_section,
    tail_cell,
)
from analysis.studies.load_sweep.study import (
    MORE_THAN_THE_LINK,
    AttemptsResult,
    CongestionResult,
    EstimateResult,
    LevelResult,
    LoadResult,
    NeedResult,
    ObservedResult,
    PredictionResult,
    PrintedFitResult,
    Results,
    SweepResult,
)

NAME = Column(kind="words")
COEFFICIENTS = (Column("A, s", ".3f"), Column("B", ".2f"), Column("n", ".2f"), Column("C, Gbit/s"))
SECONDS = ".3g"

Sweeps = Sequence[SweepResult]


def screen(results: Results) -> Sequence[RenderableType]:
    """Return the tables for a terminal: each sweep's levels, fit and congestion point beside Salamy's."""
    title = Text("Iteration time under cross traffic, with 95 % intervals", style="bold")
    again = (
        [on_screen.table_renderable(attempt_table(results.attempts))]
        if any(each.invalid for each in results.attempts)
        else []
    )
    return [title, *(map(_on_screen, results.sweeps) if results.sweeps else [Text("no valid trial")]), *again]


def level_table(sweep: SweepResult) -> Table:
    """Return a table of a sweep's iteration times by the payload rate of cross traffic."""
    columns = (
        Column("payload,\nGbit/s", ".2f"),
        Column("mean, s", SECONDS),
        Column(),
        Column(f"{TAIL}, s", SECONDS),
        Column("times\nno load", ".2f"),
        Column("fluid\nlimit, s", SECONDS),
    )
    return Table(columns, one_section(map(_level, sweep.levels)), sweep.name)


def demand_table(sweeps: Sweeps) -> Table:
    """Return a table of congestion points, and of their data against theory (Tables 3.2, 3.4 and 3.6)."""
    columns = (
        Column("data of an\niteration, MB", ".0f"),
        Column("slope before,\nof a full link's", ".0%"),
        *(Column("congestion,\nGbit/s"), Column("lines cross,\nGbit/s"), Column("data there,\nMB", ".0f")),
        Column("above\ntheory", "+.0f", " %"),
        *(Column("as Salamy\ntakes it,\nGbit/s"), Column("MB", ".0f"), Column("above\ntheory", "+.0f", " %")),
        *(Column("Salamy,\nGbit/s"), Column("Salamy,\nMB", ".0f"), Column("Salamy,\nabove theory", "+.0f", " %")),
    )
    return _by_kind(sweeps, columns, _demand)


def bandwidth_table(sweeps: Sweeps) -> Table:
    """Return a table of needed and available bandwidth in the most congested case (Tables 3.3, 3.5 and 3.7)."""
    rates = ("available", "unused")
    columns = (
        Column("at load,\nGbit/s"),
        *(Column(name, ".2f") for name in ("needed", *rates)),
        Column("share", ".0f", " %"),
        *(Column(name, ".2f") for name in ("as Salamy\ntakes it:\navailable", "unused")),
        *(Column(name, ".2f") for name in ("Salamy:\nneeded", *rates)),
        Column("share", ".0f", " %"),
    )
    return _by_kind(sweeps, columns, _bandwidth)


def spare_table(sweeps: Sweeps) -> Table:
    """Return a table of the unused bandwidth of a saturated link, Gbit/s, by model and kind of traffic (Table 3.8)."""
    kinds = list(dict.fromkeys(sweep.kind for sweep in sweeps))
    rows = []
    for name in dict.fromkeys(_short_name(each, sweeps) for each in sweeps):
        own = {each.kind: each for each in sweeps if _short_name(each, sweeps) == name}
        rows.append((Cell(name), *(_spare(own.get(kind)) for kind in kinds)))
    return Table((NAME, *(Column(kind, ".2f") for kind in kinds)), one_section(rows), tight=True)


def fit_table(sweeps: Sweeps) -> Table:
    """Return a table of the chosen fits' coefficients, with intervals."""
    judged = (
        *(Column("R²,\nlog", ".3f"), Column("R²,\nlinear", ".3f"), Column("misses a level\nleft out by", ".1%")),
        Column("chosen\nagain", ".0%"),
    )
    columns = (*COEFFICIENTS, *judged)
    return _by_kind([each for each in sweeps if each.fit], columns, _fit)


def printed_fit_table(sweeps: Sweeps) -> Table:
    """Return a table of fits with Salamy's n and C, beside Salamy's coefficients (Tables 3.9 and 3.10)."""
    columns = (
        Column("n", "g"),
        *COEFFICIENTS[:2],
        Column("R²,\nlog", ".3f"),
        *(Column("Salamy:\nA, s", "g"), Column("B", "g")),
        Column("source"),
    )
    return _by_kind([each for each in sweeps if each.paper and each.paper.ours_with_its_n], columns, _as_printed)


def prediction_table(sweeps: Sweeps) -> Table:
    """Return a table of the fits' predicted iteration times at some loads, with extrapolations marked."""
    fitted = [sweep for sweep in sweeps if sweep.predictions]
    heads = [Column(f"at {each.load_gbps:g} Gbit/s", ".3g", " s") for each in fitted[0].predictions] if fitted else []
    rows = ((Cell(mark_name(sweep.name, sweep.disturbance)), *map(_prediction, sweep.predictions)) for sweep in fitted)
    return Table((NAME, *heads), one_section(rows), tight=True)


def load_table(found: Sequence[LoadResult]) -> Table:
    """Return a table of requested, planned, offered and achieved loads, as means over trials."""
    columns = (
        Column(kind="names"),
        Column("requested,\nGbit/s", "g"),
        *(Column(name, ".2f") for name in ("planned", "offered", "taken by\nreceivers", "sent by\ncounters")),
        *(Column("trials", "d"), Column("schedule\nheld", "d"), Column("late by,\np99", ".1f", " ms")),
        Column("began\ntoo late", ".1%"),
    )
    return Table(columns, group_by_name(found, lambda each: each.kind, _load), empty="No trial had cross traffic.")


def attempt_table(found: Sequence[AttemptsResult]) -> Table:
    """Return a table of cells with attempts that are not valid, and the numbers of disturbed ones and of losses."""
    columns = (
        NAME,
        *(Column(name, "d") for name in ("attempts", "not valid", "disturbed\nonly", "segments\nsent again")),
    )
    spoilt = [each for each in found if each.invalid]
    rows = (
        (Cell(each.name), Cell(each.made), Cell(each.invalid), Cell(each.disturbed), Cell(each.resent))
        for each in spoilt
    )
    attempts = sum(each.made for each in found)
    return Table(columns, one_section(rows), "Repeated", empty=f"No attempt of {attempts} was invalid.")


def intra_iteration_table(sweeps: Sweeps) -> Table:
    """Return a table of the rates of flows 1 and 2 while iterations communicate, Gbit/s (Table 3.11)."""
    heads = ("flow 1,\nover time", "flow 2", "flow 1,\nover packets", "flow 2", "Salamy:\nflow 1", "flow 2")
    columns = (NAME, Column("requested,\nGbit/s", "g"), *(Column(head, ".2f") for head in heads))
    rows = []
    for sweep in sweeps:
        for each in sweep.inside:
            one, other = each.flow_1, each.flow_2
            rates = (one.over_time, other.over_time, one.over_packets, other.over_packets)
            name = mark_name(sweep.name, sweep.disturbance)
            rows.append((Cell(name), *map(Cell, (each.asked_gbps, *rates, *(each.paper_gbps or (None, None))))))
    empty = (
        "Nothing was measured for this: it takes workers whose interfaces were sampled, of which one receives cross "
        "traffic, from a host that does not train, and another sends to a third."
    )
    return Table(columns, one_section(rows), empty=empty, tight=True)


def missing_reasons(sweeps: Sweeps, why: Callable[[SweepResult], str | None]) -> list[str]:
    """Return a line for each sweep for which `why` gives a reason."""
    return [f"{sweep.name}: {why(sweep)}" for sweep in sweeps if why(sweep)]


def describe_disturbed_levels(sweep: SweepResult) -> str:
    """Return a text on the levels with only disturbed trials, on which the fit rests too; empty without any."""
    found = sweep.disturbed_levels
    return f"{len(found)} of {len(sweep.levels)} levels, and so fit and congestion point" if found else ""


def format_equation(fit: PrintedFitResult) -> str:
    """Return a fit's equation as a line of text, with t in s and BW in Gbit/s."""
    a_s, b, n, capacity = (each.value for each in (fit.a_s, fit.b, fit.n, fit.capacity_gbps))
    power = "" if n == 1 else f"^{n:.3g}"
    return f"t = {a_s:.3g} exp({b:.4g} / ({capacity:.4g} - BW){power})"


def _on_screen(sweep: SweepResult) -> RenderableType:
    facts = (
        ("fit", _fit_in_words(sweep)),
        ("congestion", _congestion_in_words(sweep)),
        ("", _salamy(sweep)),
        (MARK, describe_disturbed_levels(sweep)),
    )
    table = on_screen.table_renderable(level_table(sweep), title_style="bold cyan")
    return Padding(Group(table, on_screen.facts_renderable(facts)), (1, 0, 0, 0))


def _level(level: LevelResult) -> Sequence[Cell]:
    ends = level.mean_ci95_s
    between = f"{ends[0]:{SECONDS}} to {ends[1]:{SECONDS}}" if ends else ""
    mark = "" if level.disturbance is None else describe_effect(level.disturbance)
    return (
        Cell(level.payload_gbps),
        Cell(level.mean_s),
        Cell(note="\n".join(filter(None, [between, mark]))),
        tail_cell(level.p99_s, level.p99_ci95_s, level.max_s, level.count),
        Cell(level.times_no_load),
        Cell("none" if level.fluid_s is None else level.fluid_s),
    )


def _fit_in_words(sweep: SweepResult) -> str:
    if sweep.fit is None:
        return f"none: {sweep.why_no_fit}"
    return f"{format_equation(sweep.fit)} s, R² {sweep.fit.r_squared.log:.3f} (log)"


def _congestion_in_words(sweep: SweepResult) -> str:
    if sweep.congestion is None:
        return f"none: {sweep.why_no_congestion}"
    return f"at {sweep.congestion.load_gbps:.1f} Gbit/s, {_data(sweep.congestion)}"


def _salamy(sweep: SweepResult) -> str:
    observed = sweep.observed
    if observed is None:
        return ""
    load = observed.congestion_gbps
    return f"Salamy: {'' if load is None else f'at {load:g} Gbit/s, '}{_data(observed)}"


def _data(point: CongestionResult | ObservedResult) -> str:
    above = point.above_theory_percent
    return f"{point.demand_mb:.0f} MB: {abs(above):.0f} % {'above' if above >= 0 else 'below'} theory"


def _by_kind(sweeps: Sweeps, columns: Iterable[Column], figures: Callable[[SweepResult], Sequence[Cell]]) -> Table:
    """Return a row for each sweep, under a line for each kind of traffic and transport."""

    def row(sweep: SweepResult) -> Sequence[Cell]:
        return (Cell(mark_name(_short_name(sweep, sweeps), sweep.disturbance)), *figures(sweep))

    sections: tuple[Section, ...] = group_by_title(sweeps, lambda sweep: sweep.kind, row)
    return Table((NAME, *columns), sections, tight=True)


def _short_name(sweep: SweepResult, sweeps: Sweeps) -> str:
    """Return the model; the whole name if others of the kind train the same."""
    same = [each for each in sweeps if (each.kind, each.model) == (sweep.kind, sweep.model)]
    return sweep.model if len(same) == 1 else sweep.name


def _demand(sweep: SweepResult) -> Sequence[Cell]:
    point, theirs = sweep.congestion, sweep.observed
    ours = [Cell()] * 5
    if point:
        ours = [
            Cell(point.linear_slope),
            Cell(point.load_gbps),
            Cell(point.crossing_gbps, point.crossing_ci95_gbps),
            Cell(point.demand_mb, point.demand_ci95_mb),
            Cell(point.above_theory_percent),
        ]
    again = sweep.as_printed and sweep.as_printed.congestion
    as_printed = (again.load_gbps, again.demand_mb, again.above_theory_percent) if again else (None,) * 3
    printed = (theirs.congestion_gbps, theirs.demand_mb, theirs.above_theory_percent) if theirs else (None,) * 3
    return (Cell(sweep.data_mb), *ours, *map(Cell, (*as_printed, *printed)))


def _bandwidth(sweep: SweepResult) -> Sequence[Cell]:
    ours, theirs = sweep.most_congested, sweep.observed
    again = sweep.as_printed and sweep.as_printed.most_congested
    return (
        Cell(ours.load_gbps if ours else None),
        *_needed(ours),
        *map(Cell, (again.available_gbps, again.delta_gbps) if again else (None,) * 2),
        *_needed(theirs.most_congested if theirs else None),
    )


def _needed(case: NeedResult | None) -> Sequence[Cell]:
    if case is None:
        return [Cell()] * 4
    return list(map(Cell, (case.required_gbps, case.available_gbps, case.delta_gbps, case.delta_percent)))


def _spare(sweep: SweepResult | None) -> Cell:
    if sweep is None:
        return Cell()
    again = sweep.as_printed and sweep.as_printed.spare_gbps
    reported = [
        *([MARK] if sweep.disturbance is not None else []),
        *([f"as Salamy takes it {again:.2f}"] if again is not None and sweep.observed else []),
        *([f"Salamy {sweep.observed.spare_gbps:.2f}"] if sweep.observed else []),
    ]
    return Cell(sweep.spare_gbps, note=", ".join(reported))


def _fit(sweep: SweepResult) -> Sequence[Cell]:
    fit = sweep.fit
    assert fit is not None
    return (
        *_coefficients(fit),
        Cell(fit.r_squared.log),
        Cell(fit.r_squared.linear),
        Cell(fit.chosen_by[0].miss),
        Cell(fit.chosen_by[0].chosen),
    )


def _coefficients(fit: PrintedFitResult) -> Sequence[Cell]:
    return [_estimate(each) for each in (fit.a_s, fit.b, fit.n, fit.capacity_gbps)]


def _estimate(estimate: EstimateResult) -> Cell:
    return Cell(estimate.value, estimate.ci95, "held" if estimate.ci95 is None else "")


def _as_printed(sweep: SweepResult) -> Sequence[Cell]:
    assert sweep.paper is not None
    ours, theirs = sweep.paper.ours_with_its_n, sweep.paper.fit
    assert ours is not None
    assert theirs is not None
    own = (_estimate(ours.a_s), _estimate(ours.b), Cell(ours.r_squared.log))
    return (Cell(theirs.n), *own, Cell(theirs.a_s), Cell(theirs.b), Cell(theirs.source))


def _prediction(found: PredictionResult) -> Cell:
    if found.time_s is None:
        short = found.why_not if found.why_not == MORE_THAN_THE_LINK else "beyond the model"
        return Cell(note=short or "", why=found.why_not or "")
    low, high = ("" if end is None else f"{end:.3g}" for end in found.ci95 or (None, None))
    return Cell(found.time_s, note=format_interval((low, high)) + ("\nextrapolated" if found.extrapolates else ""))


def _load(found: LoadResult) -> Sequence[Cell]:
    reported, held = found.schedules_told, found.schedules_held
    late_us = found.lateness_p99_us
    return (
        *map(Cell, (found.asked_gbps, found.planned_gbps, found.offered_gbps, found.achieved_gbps, found.payload_gbps)),
        Cell(found.trials),
        Cell("" if not reported else "all" if held == reported else held),
        Cell(None if late_us is None else late_us / 1e3),
        Cell(found.lagging_share),
    )
