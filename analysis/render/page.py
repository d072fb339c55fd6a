# SPDX-License-Identifier: Apache-2.0
"""The report's building blocks as HTML. Nothing in it is loaded from elsewhere."""

import base64
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
from matplotlib.figure import Figure

from analysis.reading.cells import Measured, label
from analysis.reading.data import iterations
from analysis.reading.fidelity import fidelity
from analysis.reading.traces import Trace, at_once
from analysis.render.screen import described, limit_of, split
from roundabout.store import Run

SHELL = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


class Html(str):
    """Markup that a notebook shows as such."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(self)


def whole_page(title: str, body: str) -> str:
    """A complete document around `body`."""
    style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    return SHELL.format(title=escape(title), style=style, body=body)


def header(run: Run, summary: dict[str, Any]) -> Html:
    """What it is about, which run this is, and how real it is."""
    experiment = run.manifest["experiment"]
    how = fidelity(summary["testbed"])
    kind = "" if how.nature == "emulated" else f" {how.nature}"
    facts = [
        summary["experiment"],
        experiment.get("source"),
        f"{experiment['repetitions']} repetition{'' if experiment['repetitions'] == 1 else 's'}",
        summary["run"],
    ]
    return Html(
        f'<span class="stamp{kind}">{escape(how.stamp)}</span>'
        f"<h1>{escape(experiment['about'])}</h1>"
        f'<p class="lead">{" · ".join(escape(fact) for fact in facts if fact)}</p>'
    )


def cards(summary: dict[str, Any]) -> Html:
    """Each expectation in figures with what was measured and the verdict."""
    found = "".join(map(_card, split(summary["expectations"])[0]))
    return Html(f'<div class="cards">{found}</div>' if found else "")


def times(summary: dict[str, Any]) -> Html:
    """Iteration times per variant and job, the fluid limits beside them."""
    heads = ("median", "mean", "p99", "last half,<br>median", "speed-up<br>over fair", "fluid limit", "off the limit")
    return _by_variant(summary["cells"], heads, _times)


def show(figure: Figure | None, caption: str, alt: str) -> Html:
    """A figure with what it shows."""
    if figure is None:
        return Html("<p>Nothing was measured that could be drawn here.</p>")
    buffer = BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    data = base64.b64encode(buffer.getvalue()).decode()
    image = f'<img src="data:image/svg+xml;base64,{data}" alt="{escape(alt)}">'
    return Html(f"<figure>{image}<figcaption>{caption}</figcaption></figure>")


def gains(summary: dict[str, Any]) -> Html:
    """Which part of what interleaving could gain at most each job gained."""
    parts: dict[str, list[str]] = {}
    for cell in summary["cells"]:
        gain = cell["last_half"]["gain_of_possible"]
        if gain is not None and cell["variant"] != "alone":
            parts.setdefault(label(cell["variant"], cell["levels"]), []).append(f"{escape(cell['job'])} {gain:.0%}")
    if not parts:
        return Html("")
    texts = [f"<b>{escape(name)}</b>: {', '.join(gained)}" for name, gained in parts.items()]
    return Html(
        f"<p>Of what perfect interleaving would save over fair, saved in the last half: {'; '.join(texts)}.</p>"
    )


def overlaps(traces: Sequence[Trace]) -> Html:
    """How much of the sending was done while another job sent too, in the first iteration and in the last half."""
    texts = []
    for trace in traces:
        first = at_once(trace, 0.0, max(spans[0, 1] for spans in trace.spans.values()))
        middle = max(spans[len(spans) // 2, 0] for spans in trace.spans.values())
        last = at_once(trace, middle, min(spans[-1, 1] for spans in trace.spans.values()))
        texts.append(f"<b>{escape(trace.cell.name)}</b> {first:.0%}, then {last:.0%}")
    what = "Of the time in which any job sent, several did at once in the first iteration and over the last half"
    return Html(f"<p>{what}: {'; '.join(texts)}.</p>" if texts else "")


def marks(summary: dict[str, Any]) -> Html:
    """ECN marks per iteration by variant and job, how far they can be off, and what no iteration can claim."""
    found = [cell for cell in summary["cells"] if cell.get("marks_per_iteration")]
    if not found:
        return Html("<p>Whose the ECN marks are was not measured.</p>")
    heads = ("median", "mean", "p99", "off by<br>at most", "unattributed")
    return _by_variant(found, heads, _marks)


def invalid(summary: dict[str, Any]) -> Html:
    """Trials that count in no figure, and why."""
    found = summary["invalid_trials"]
    if not found:
        return Html("<p>No trial was invalid.</p>")
    row = '<tr><td class="name"><code>{}</code></td><td class="name">{}</td></tr>'
    rows = [row.format(escape(each["key"]), escape(each["reason"])) for each in found]
    return as_table('<th class="name">invalid trial</th><th class="name">why</th>', rows)


def fidelity_notes(summary: dict[str, Any]) -> Html:
    """How real it is, and what cannot be seen that way."""
    how = fidelity(summary["testbed"])
    cannot = "".join(f"<li>{each}</li>" for each in how.cannot)
    return Html(f"<p>{how.about}</p>" + (f"<ul>{cannot}</ul>" if cannot else ""))


def headroom(run: Run) -> Html:
    """How much CPU was left in the worst valid trial, and how late the trainers woke."""
    trials = run.table("trials")
    names = ("busy_max", "steal_max", "steal_mean", "late_p90_ms", "stalled_share")
    worst = {name: pc.max(trials[name]).as_py() for name in names}
    facts = [
        ("CPU, busiest second", _share(worst["busy_max"])),
        ("CPU stolen, worst second", _share(worst["steal_max"])),
        *_known("CPU stolen, whole trial", worst["steal_mean"]),
        *_known("time in which a link stood still although packets waited", worst["stalled_share"]),
        (
            "trainers' wake-ups, nine of ten iterations",
            "unknown" if worst["late_p90_ms"] is None else f"at most {worst['late_p90_ms']:.2f} ms late",
        ),
    ]
    return Html(_facts(facts))


def _known(name: str, share: float | None) -> list[tuple[str, str]]:
    """A fact that runs of earlier versions do not have."""
    return [] if share is None else [(name, _share(share))]


def provenance(run: Run, cells: Sequence[Measured]) -> Html:
    """Which code measured this, where, when, against which clocks."""
    manifest = run.manifest
    sessions = manifest["sessions"]
    trials = run.table("trials", valid_only=False)
    bound_ns = pc.max(iterations(run)["offset_bound_ns"]).as_py()
    facts = [
        ("run", f"<code>{escape(run.id)}</code>"),
        ("trials", f"{trials.num_rows} of {len(manifest['plan'])} done, {pc.sum(trials['valid']).as_py() or 0} valid"),
        *((f"session {number}", _session(session)) for number, session in enumerate(sessions, start=1)),
        ("testbed", _pairs(manifest["testbed"].get("identity", {}))),
        ("clocks", "" if bound_ns is None else f"hosts against the controller within {bound_ns / 1e3:.0f} µs"),
        ("transports", "<br>".join(_transports(cells))),
    ]
    return Html(_facts(facts) + _hosts(sessions) + _artefacts(manifest.get("artefacts", {})))


def _card(each: dict[str, Any]) -> str:
    value = "not measured" if each["verdict"] == "not measured" else escape(each["found"])
    if each["measured"] is not None and len(each["parts"]) == 1:
        value = f"{each['measured']:.2f}"
    interval = f"<small>95 %: {each['ci95'][0]:.2f} to {each['ci95'][1]:.2f}</small>" if each["ci95"] else ""
    long = "" if each["measured"] is not None else " long"
    basis = f" ({each['basis']})" if each["basis"] else ""
    return (
        f'<div class="card {each["verdict"].replace(" ", "-")}"><div class="about">{escape(described(each))}</div>'
        f'<div class="value{long}">{value}{interval}</div>'
        f'<div class="against">paper {escape(each["expected"])}{basis}: {_verdict(each["verdict"])}</div></div>'
    )


def _verdict(verdict: str) -> str:
    return f'<span class="verdict {verdict.replace(" ", "-")}">{verdict}</span>'


def _by_variant(
    cells: Sequence[dict[str, Any]], heads: Iterable[str], figures: Callable[[dict[str, Any]], str]
) -> Html:
    """A table of cells, one row each; a variant is named once."""
    rows = []
    previous = None
    for cell in cells:
        name = label(cell["variant"], cell["levels"])
        first = name != previous
        place = (
            f'<td class="name"><b>{escape(name) if first else ""}</b></td><td class="name">{escape(cell["job"])}</td>'
        )
        rows.append(f'<tr class="{"first" if first else ""}">{place}{figures(cell)}</tr>')
        previous = name
    head = '<th class="name"></th><th class="name">job</th>' + "".join(f"<th>{each}</th>" for each in heads)
    return as_table(head, rows)


def _times(cell: dict[str, Any]) -> str:
    last_half = cell["last_half"]
    limit_name, limit_ms = limit_of(cell)
    figures = [
        *((cell[f"{each}_ms"], cell[f"{each}_ci95_ms"], 1) for each in ("median", "mean", "p99")),
        (last_half["median_ms"], last_half["median_ci95_ms"], 1),
        (cell["speedup_over_fair"], cell["speedup_over_fair_ci95"], 2),
    ]
    limit = "<td>none</td><td></td>"
    if limit_ms is not None:
        off = last_half["median_ms"] / limit_ms - 1
        limit = f"<td>{limit_ms:.1f}<small>{limit_name}</small></td><td>{off:+.1%}</td>"
    return "".join(as_figure(*each) for each in figures) + limit


def _marks(cell: dict[str, Any]) -> str:
    own = cell["marks_per_iteration"]
    share = own["unattributed_share"]
    figures = "".join(as_figure(own[each], own[f"{each}_ci95"], 0) for each in ("median", "mean", "p99"))
    return f"{figures}<td>{own['bound']}</td><td>{'' if share is None else f'{share:.1%}'}</td>"


def as_figure(value: float | None, interval: Sequence[float] | None, digits: int) -> str:
    """A cell with a figure, and its interval under it; empty where there is none."""
    if value is None:
        return "<td></td>"
    under = f"<small>{interval[0]:.{digits}f} to {interval[1]:.{digits}f}</small>" if interval else ""
    return f"<td>{value:.{digits}f}{under}</td>"


def as_table(head: str, rows: Iterable[str]) -> Html:
    """A table that scrolls where the page is narrow; `head` and `rows` are markup."""
    return Html(f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>')


def _facts(facts: Iterable[tuple[str, str]]) -> str:
    """A list of terms and (HTML) values, without those that are empty."""
    return f"<dl>{''.join(f'<dt>{escape(term)}</dt><dd>{value}</dd>' for term, value in facts if value)}</dl>"


def _pairs(values: dict[str, Any]) -> str:
    return ", ".join(f"{escape(str(key))} <code>{escape(str(value))}</code>" for key, value in values.items())


def _transports(cells: Sequence[Measured]) -> list[str]:
    """What each variant's jobs are told, by levels only where that differs between them."""
    told = defaultdict(set)
    for cell in cells:
        told[cell.variant].add(cell.transports)
    names = (cell.variant if len(told[cell.variant]) == 1 else cell.name for cell in cells)
    lines = (f"{escape(name)}: {escape(cell.transports)}" for name, cell in zip(names, cells, strict=True))
    return list(dict.fromkeys(lines))


def _session(session: dict[str, Any]) -> str:
    code, controller = session["code"], session["controller"]
    changed = " with uncommitted changes" if code["dirty"] else ""
    revision = (
        f"revision <code>{escape(code['revision'][:12])}</code>{changed}" if code["revision"] else "revision unknown"
    )
    return (
        f"{escape(session['started_utc'][:19])} UTC, {revision}, "
        f"Linux {escape(controller['kernel'])}, Python {escape(controller['python'])}"
    )


def _hosts(sessions: Sequence[dict[str, Any]]) -> str:
    hosts = sessions[-1]["hosts"] if sessions else {}
    rows = "".join(f"<dt>{escape(host)}</dt><dd>{_pairs(facts)}</dd>" for host, facts in hosts.items())
    return f"<details><summary>Hosts</summary><dl>{rows}</dl></details>" if rows else ""


def _artefacts(artefacts: dict[str, str]) -> str:
    rows = "".join(
        f"<dt>{escape(path)}</dt><dd><code>{escape(digest)}</code></dd>" for path, digest in artefacts.items()
    )
    return f"<details><summary>Programs that measured, with SHA-256</summary><dl>{rows}</dl></details>" if rows else ""


def _share(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.0%}"
