# SPDX-License-Identifier: Apache-2.0
"""Tables of expectations and verdicts for the screen, and cards and a table of claims for the page."""

from collections.abc import Sequence

from analysis.expectations.verdicts import Verdict
from analysis.reading.disturbance import MARK
from analysis.render.page import Html, fill_template, list_html, paragraph, render_part, table_html
from analysis.render.tables import TONES, Cell, Column, Table, one_section


def with_figures(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Return the verdicts on numeric expectations, which are not claims in words."""
    return [each for each in verdicts if each.kind != "claim"]


def claims_only(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Return the verdicts on claims in words."""
    return [each for each in verdicts if each.kind == "claim"]


def screen(verdicts: Sequence[Verdict]) -> list[Table]:
    """Return tables of all verdicts, with the number of claims that were not measured."""
    figures, claims = with_figures(verdicts), claims_only(verdicts)
    tables = []
    if figures:
        columns = (
            _head("expectation"),
            Column("expected" if all(map(_is_own_bound, figures)) else "paper", wraps=True),
            Column("measured", ".2f", wraps=True),
            _head("verdict"),
        )
        why = _why_not(figures)
        rows = [(Cell(each.subject), _expected(each), _measured(each), _verdict(each)) for each in figures]
        title = "Against own bounds" if all(map(_is_own_bound, figures)) else "Against the paper"
        tables.append(
            Table(columns, one_section([] if why else rows), title, _reasons(figures), f"Expectations: {why}.")
        )
    if claims:
        known = _known(claims)
        caption = f"not measured by this run: {len(claims) - len(known)} of {len(claims)}"
        claimed = ((Cell(each.claim), Cell(each.found), _verdict(each)) for each in known)
        heads = tuple(map(_head, ("claim", "here", "verdict")))
        why = _why_not(claims) or "not measured by this run"
        empty = f"What papers claim ({len(claims)}): {why}."
        below = caption if len(known) < len(claims) else ""
        tables.append(Table(heads, one_section(claimed), "What papers claim", below, empty))
    return tables


def _reasons(verdicts: Sequence[Verdict]) -> str:
    """Return why verdicts are inconclusive; of repetitions that differ, the page alone has each number."""
    by_kind: dict[str, list[str]] = {}
    for each in verdicts:
        if each.undecided:
            by_kind.setdefault(each.undecided.partition(":")[0], []).append(each.undecided)
    return "; ".join(
        f"{len(reasons)} inconclusive: {reasons[0] if len(set(reasons)) == 1 else f'{kind}, each as the page says'}"
        for kind, reasons in by_kind.items()
    )


def cards(verdicts: Sequence[Verdict]) -> Html:
    """Return a card for each numeric expectation with its measurement and verdict.

    Return the reason instead if no expectation is judged.
    """
    figures = with_figures(verdicts)
    if why := _why_not(figures):
        return paragraph(f"Expectations: {why}.")
    cards = [
        {
            "of": each,
            "whose": "ours:" if _is_own_bound(each) else "paper",
            "tone": TONES[each.verdict].value,
            "word": each.verdict,
            "why": each.undecided,
            "about": each.subject,
            "basis": _basis(each),
            "value": _value(each),
            "ci95": each.ci95 if _is_figure(each) and each.ci95 and each.ci95[0] < each.ci95[1] else None,
        }
        for each in figures
    ]
    return fill_template("cards", cards=cards) if cards else Html("")


def agreement_table(verdicts: Sequence[Verdict], paper: str) -> Html:
    """Return a table of a paper's claims with findings and verdicts; claims that were not measured are collapsed."""
    claims = claims_only(verdicts)
    known = _known(claims)
    columns = (_head(paper), _head("here"), _head(""))
    rows = [
        (
            Cell(each.claim, note=each.source or ""),
            Cell(each.found),
            _verdict(each),
        )
        for each in known
    ]
    others = [f"{each.claim} ({each.source})" for each in claims if each not in known]
    table = table_html(Table(columns, one_section(rows))) if rows else Html("")
    return table + (render_part("folded", title="Not measured by this run", lines=others) if others else Html(""))


def summarize(verdicts: Sequence[Verdict], paper: str) -> Html:
    """Return a paragraph that counts the claims that agree and lists those that do not."""
    claims = claims_only(verdicts)
    known = _known(claims)
    if not known:
        return paragraph(f"Not held against {paper}: {_why_not(claims) or 'too little was measured'}.")
    against = [each.claim or "" for each in known if each.verdict == "fail"]
    agree = sum(each.verdict == "pass" for each in known)
    inconclusive = len(known) - agree - len(against)
    title = (
        f"Of {len(claims)} claims of {paper}, pass: {agree}; fail: {len(against)}; "
        f"{f'inconclusive: {inconclusive}; ' if inconclusive else ''}not measured: {len(claims) - len(known)}."
    )
    bold = render_part("strong", text=title)
    return bold + list_html("Not so here:", against)


def _head(title: str) -> Column:
    return Column(title, kind="words")


def _known(verdicts: Sequence[Verdict]) -> list[Verdict]:
    return [each for each in verdicts if each.verdict != "not measured"]


def _why_not(verdicts: Sequence[Verdict]) -> str:
    """Return the reason why none of these is judged; empty if one is, or if there is no reason."""
    reasons = set() if _known(verdicts) else {each.found for each in verdicts}
    return reasons.pop() if len(reasons) == 1 else ""


def _is_own_bound(verdict: Verdict) -> bool:
    """Return True if the expectation is a bound that no paper prints."""
    return verdict.kind == "bound" and verdict.source is None


def _expected(verdict: Verdict) -> Cell:
    return Cell(verdict.expected, note="ours" if _is_own_bound(verdict) else "")


def _measured(verdict: Verdict) -> Cell:
    """Return a figure with its interval, or words."""
    return Cell(_value(verdict), verdict.ci95) if _is_figure(verdict) else Cell(verdict.found)


def _verdict(verdict: Verdict) -> Cell:
    """Return the verdict, with the basis of an agreement and a mark if it rests on disturbed trials."""
    return Cell(verdict.verdict, note=_basis(verdict), tone=TONES[verdict.verdict])


def _basis(verdict: Verdict) -> str:
    return ", ".join(filter(None, [verdict.basis, MARK if verdict.disturbed else ""]))


def _is_figure(verdict: Verdict) -> bool:
    """Return True if one figure is the finding."""
    return verdict.measured is not None and len(verdict.parts) == 1


def _value(verdict: Verdict) -> str:
    if verdict.verdict == "not measured":
        return "not measured"
    return f"{verdict.measured:.2f}{_unit(verdict)}" if _is_figure(verdict) else verdict.found


def _unit(verdict: Verdict) -> str:
    return f" {verdict.unit}" if verdict.unit not in {"", "times"} else ""
