# SPDX-License-Identifier: Apache-2.0
"""The tables of a sweep's report as HTML, ours beside what the thesis printed."""

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any

from analysis.reading.inside import Inside
from analysis.render.page import Html, as_figure, as_table
from analysis.statistics.degradation.fit import predict
from analysis.statistics.degradation.sweep import DegradationError
from analysis.studies.load_sweep.study import Study
from analysis.studies.load_sweep.table import span

NOTHING = Html("<p>Too little was measured for this.</p>")

Sweep = dict[str, Any]


def agreement(claims: Sequence[dict[str, Any]]) -> Html:
    """Each claim of Salamy that was measured, what was found, and whether that agrees; the others are folded."""
    judged = [each for each in claims if each["verdict"] != "not measured"]
    others = [each for each in claims if each["verdict"] == "not measured"]
    head = '<th class="name">Salamy</th><th class="name">here</th><th class="name"></th>'
    table = as_table(head, map(_claim, judged)) if judged else ""
    lines = "".join(f"<li>{escape(each['claim'])} ({escape(each['source'])})</li>" for each in others)
    folded = f"<details><summary>Not measured by this run</summary><ul>{lines}</ul></details>" if lines else ""
    return Html(table + folded)


AGREEMENT = {"inside": "agrees", "outside": "does not agree", "undecided": "undecided"}


def _claim(each: dict[str, Any]) -> str:
    word = f'<span class="verdict {each["verdict"]}">{AGREEMENT[each["verdict"]]}</span>'
    return (
        f'<tr><td class="name">{escape(each["claim"])}<small>{escape(each["source"])}</small></td>'
        f'<td class="name">{escape(each["found"])}</td><td class="name">{word}<small>{each["basis"]}</small></td></tr>'
    )


def in_short(claims: Sequence[dict[str, Any]]) -> Html:
    """How many claims agree, and which do not."""
    agree, against, open_ = (
        [each["claim"] for each in claims if each["verdict"] in words]
        for words in (("inside",), ("outside",), ("undecided", "not measured"))
    )
    if len(open_) == len(claims):
        return Html("<p>Too little was measured to hold it against Salamy.</p>")
    not_so = "".join(f"<li>{escape(claim)}</li>" for claim in against)
    return Html(
        f"<p><b>Of {len(claims)} claims of Salamy, agreeing with this run: {len(agree)}; not agreeing: "
        f"{len(against)}; not measured: {len(open_)}.</b>{' Not so here:' if not_so else ''}</p>"
        f"{f'<ul>{not_so}</ul>' if not_so else ''}"
    )


def demands(sweeps: Sequence[Sweep]) -> Html:
    """Congestion points, and their data against theory (Tables 3.2, 3.4 and 3.6)."""
    heads = (
        "data of an<br>iteration, MB", "congestion,<br>Gbit/s", "lines cross,<br>Gbit/s", "data there,<br>MB",
        "above<br>theory", "thesis,<br>Gbit/s", "thesis,<br>MB", "thesis,<br>above theory",
    )  # fmt: skip
    return _by_setting(sweeps, heads, _demand)


def bandwidths(sweeps: Sequence[Sweep]) -> Html:
    """What the most congested case needed and had (Tables 3.3, 3.5 and 3.7)."""
    rates = ("needed", "available", "unused", "share")
    heads = ("at load,<br>Gbit/s", *rates, "thesis:<br>needed", *rates[1:])
    return _by_setting(sweeps, heads, _bandwidth)


def spare(sweeps: Sequence[Sweep]) -> Html:
    """What is left unused while the link is saturated, Gbit/s (Table 3.8): a row a model, a column a setting."""
    if not sweeps:
        return NOTHING
    settings = list(dict.fromkeys(map(_setting, sweeps)))
    head = '<th class="name"></th>' + "".join(f"<th>{escape(setting)}</th>" for setting in settings)
    rows = []
    for name in dict.fromkeys(_within(each, sweeps) for each in sweeps):
        own = {_setting(each): each for each in sweeps if _within(each, sweeps) == name}
        rows.append(
            f'<tr><td class="name">{escape(name)}</td>{"".join(_spare(own.get(each)) for each in settings)}</tr>'
        )
    return _tight(head, rows)


def fits(sweeps: Sequence[Sweep]) -> Html:
    """The chosen fits, with intervals."""
    heads = ("A, s", "B", "n", "C, Gbit/s", "R²,<br>log", "R²,<br>linear", "misses a level<br>left out by")
    return _by_setting([each for each in sweeps if each["fit"]], heads, _fit)


def fits_as_printed(sweeps: Sequence[Sweep]) -> Html:
    """Our levels fitted with the n and the C that the thesis held, beside its coefficients (Tables 3.9 and 3.10)."""
    heads = ("n", "A, s", "B", "R²,<br>log", "thesis:<br>A, s", "B", "source")
    return _by_setting([each for each in sweeps if (each["paper"] or {}).get("ours_with_its_n")], heads, _printed)


def predictions(studies: Sequence[Study], loads_gbps: Sequence[float]) -> Html:
    """How slow training would be at some loads by the fit, and when that is a guess beyond what was measured."""
    fitted = [study for study in studies if study.fit is not None]
    if not fitted:
        return NOTHING
    head = '<th class="name"></th>' + "".join(f"<th>at {load:g} Gbit/s</th>" for load in loads_gbps)
    rows = (
        f'<tr><td class="name">{escape(study.name)}</td>{"".join(_predicted(study, load) for load in loads_gbps)}</tr>'
        for study in fitted
    )
    return _tight(head, rows)


def loads(outcomes: Sequence[dict[str, Any]]) -> Html:
    """Load asked for, planned, offered and achieved, by kind and load: the mean of the trials."""
    if not outcomes:
        return Html("<p>No trial had cross traffic.</p>")
    groups: dict[tuple[str, float], list[dict[str, Any]]] = {}
    for each in outcomes:
        groups.setdefault((each["kind"], each["asked_gbps"]), []).append(each)
    heads = (
        "asked,<br>Gbit/s", "planned", "offered", "taken by<br>receivers", "on the<br>wire", "trials",
        "schedule<br>held", "late by,<br>p99", "began<br>too late",
    )  # fmt: skip
    rows, previous = [], None
    for (kind, asked), trials in sorted(groups.items()):
        name = "" if kind == previous else f"<b>{escape(kind)}</b>"
        rows.append(f'<tr class="{"first" if name else ""}"><td class="name">{name}</td>{_load(asked, trials)}</tr>')
        previous = kind
    return as_table('<th class="name"></th>' + "".join(f"<th>{each}</th>" for each in heads), rows)


def inside(found: Sequence[Inside]) -> Html:
    """Rates of two flows while iterations communicate, Gbit/s (Table 3.11)."""
    if not found:
        return Html(
            "<p>Nothing was measured for this: it takes workers whose interfaces were sampled, of which one receives "
            "cross traffic, from a host that does not train, and another sends to a third.</p>"
        )
    heads = (
        "asked,<br>Gbit/s", "flow 1,<br>over time", "flow 2", "flow 1,<br>over packets", "flow 2",
        "thesis:<br>flow 1", "flow 2",
    )  # fmt: skip
    rows = (
        f'<tr><td class="name">{escape(each.study.name)}</td><td>{each.asked_gbps:g}</td>'
        + "".join(as_figure(rate, None, 2) for pair in zip(each.flow_1, each.flow_2, strict=True) for rate in pair)
        + "".join(as_figure(rate, None, 2) for rate in each.printed or (None, None))
        + "</tr>"
        for each in found
    )
    return _tight('<th class="name"></th>' + "".join(f"<th>{each}</th>" for each in heads), rows)


def missing(sweeps: Sequence[Sweep], why: str, what: str) -> Html:
    """Of which sweeps something is missing, and why; `why` names the entry that says so."""
    lines = [f"<li>{escape(each['name'])}: {escape(each[why])}</li>" for each in sweeps if each[why]]
    return Html(f"<p>Without {what}:</p><ul>{''.join(lines)}</ul>" if lines else "")


def _by_setting(sweeps: Sequence[Sweep], heads: Sequence[str], figures: Callable[[Sweep], str]) -> Html:
    """A row a sweep, under a line for each kind of traffic and transport."""
    if not sweeps:
        return NOTHING
    rows, previous = [], None
    for sweep in sweeps:
        if _setting(sweep) != previous:
            previous = _setting(sweep)
            rows.append(f'<tr class="group"><td class="name" colspan="{len(heads) + 1}">{escape(previous)}</td></tr>')
        rows.append(f'<tr><td class="name">{escape(_within(sweep, sweeps))}</td>{figures(sweep)}</tr>')
    return _tight('<th class="name"></th>' + "".join(f"<th>{each}</th>" for each in heads), rows)


def _within(sweep: Sweep, sweeps: Sequence[Sweep]) -> str:
    """The model; the whole name where others of the setting train the same."""
    same = [each for each in sweeps if (_setting(each), each["model"]) == (_setting(sweep), sweep["model"])]
    return str(sweep["model"] if len(same) == 1 else sweep["name"])


def _tight(head: str, rows: Iterable[str]) -> Html:
    """A table whose figures stay on one line."""
    return Html(as_table(head, rows).replace("<table>", '<table class="tight">'))


def _setting(sweep: Sweep) -> str:
    return f"{sweep['traffic']}, {sweep['transport']}"


def _demand(sweep: Sweep) -> str:
    point, paper = sweep["congestion"], _observed(sweep)
    ours = "<td></td>" * 4
    if point:
        ours = (
            as_figure(point["load_gbps"], None, 1)
            + as_figure(point["crossing_gbps"], point["crossing_ci95_gbps"], 1)
            + as_figure(point["demand_mb"], point["demand_ci95_mb"], 0)
            + _percent(point["above_theory_percent"])
        )
    theirs = as_figure(paper.get("congestion_gbps"), None, 1) + as_figure(paper.get("demand_mb"), None, 0)
    return as_figure(sweep["data_mb"], None, 0) + ours + theirs + _percent(paper.get("above_theory_percent"))


def _bandwidth(sweep: Sweep) -> str:
    ours, theirs = sweep["most_congested"] or {}, _observed(sweep).get("most_congested", {})
    return as_figure(ours.get("load_gbps"), None, 1) + _needed(ours) + _needed(theirs)


def _needed(case: dict[str, Any]) -> str:
    rates = (as_figure(case.get(f"{name}_gbps"), None, 2) for name in ("required", "available", "delta"))
    return "".join(rates) + ("<td></td>" if not case else f"<td>{case['delta_percent']:.0f} %</td>")


def _spare(sweep: Sweep | None) -> str:
    if sweep is None:
        return "<td></td>"
    ours, theirs = sweep["spare_gbps"], _observed(sweep).get("spare_gbps")
    under = "" if theirs is None else f"<small>thesis {theirs:.2f}</small>"
    return f"<td>{'' if ours is None else f'{ours:.2f}'}{under}</td>"


def _fit(sweep: Sweep) -> str:
    fit = sweep["fit"]
    miss = fit["chosen_by"][0]["miss"]
    r_squared = "".join(as_figure(fit["r_squared"][name], None, 3) for name in ("log", "linear"))
    return _coefficients(fit) + r_squared + ("<td></td>" if miss is None else f"<td>{miss:.1%}</td>")


def _coefficients(fit: dict[str, Any]) -> str:
    return "".join(
        _estimate(fit[name], digits) for name, digits in (("a_s", 3), ("b", 2), ("n", 2), ("capacity_gbps", 1))
    )


def _printed(sweep: Sweep) -> str:
    ours, theirs = sweep["paper"]["ours_with_its_n"], sweep["paper"]["fit"]
    own = _estimate(ours["a_s"], 3) + _estimate(ours["b"], 2) + as_figure(ours["r_squared"]["log"], None, 3)
    return (
        f"<td>{theirs['n']:g}</td>{own}<td>{theirs['a_s']:g}</td><td>{theirs['b']:g}</td>"
        f"<td>{escape(theirs['source'])}</td>"
    )


def _estimate(estimate: dict[str, Any], digits: int) -> str:
    value = estimate["value"]
    under = "held" if estimate["ci95"] is None else span(estimate["ci95"], digits)
    return f"<td>{'' if value is None else f'{value:.{digits}f}'}<small>{under}</small></td>"


def _predicted(study: Study, load_gbps: float) -> str:
    assert study.fit is not None
    if load_gbps >= study.loaded.link_gbps:
        return "<td><small>more than the link carries</small></td>"
    try:
        found = predict(study.fit, load_gbps)
    except DegradationError as error:
        return f'<td><small title="{escape(str(error))}">beyond the model</small></td>'
    where = "<br>extrapolated" if found.extrapolates else ""
    low, high = (f"{end:.3g}" if math.isfinite(end) else "" for end in found.ci95)
    return f"<td>{found.time_s:.3g} s<small>{f'{low} to {high}' if high else f'from {low}'}{where}</small></td>"


def _load(asked: float, trials: Sequence[dict[str, Any]]) -> str:
    told = [each["schedule_held"] for each in trials if each["schedule_held"] is not None]
    held = "" if not told else "all" if all(told) else sum(told)
    means = "".join(
        as_figure(_mean(each[f"{name}_gbps"] for each in trials), None, 2)
        for name in ("planned", "offered", "achieved", "wire")
    )
    late = max((each["lateness_p99_us"] for each in trials if each["lateness_p99_us"] is not None), default=None)
    lagging = _mean(each["lagging_share"] for each in trials)
    return (
        f"<td>{asked:g}</td>{means}<td>{len(trials)}</td><td>{held}</td>"
        f"<td>{'' if late is None else f'{late / 1e3:.1f} ms'}</td>"
        f"<td>{'' if lagging is None else f'{lagging:.1%}'}</td>"
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _percent(value: float | None) -> str:
    return "<td></td>" if value is None else f"<td>{value:+.0f} %</td>"


def _observed(sweep: Sweep) -> dict[str, Any]:
    """The thesis' figures for it; empty without any."""
    return (sweep["paper"] or {}).get("observed") or {}
