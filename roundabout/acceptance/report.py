# SPDX-License-Identifier: Apache-2.0
"""Tables and page of an acceptance test."""

from collections.abc import Iterator

from analysis.render import page
from analysis.render.tables import TONES, Cell, Column, Table, one_section
from roundabout.acceptance.acceptance import PARTS, Acceptance
from roundabout.acceptance.verdicts import Verdict

TITLES = {
    "settings": "Settings, read back",
    "rdma": "RDMA's own packets",
    "paths": "Paths, before any flow",
    "links": "Flows that share links",
    "job": "The standard job beside congestors",
}
MEANINGS = [
    (name, f" {about}")
    for name, about in (
        ("lost", "pings of ten; whole ones are as large as a host's MTU, not to be split, where small ones came"),
        ("rtt_ms", "the least round trip of those"),
        ("use", "of the link's payload rate, by all its flows together"),
        ("jain", "Jain's index of the flows' rates: 1 where all get the same"),
        ("marked", "share of segments that came with ECN's mark"),
        ("drops", "packets, by the link's ports"),
        ("pauses", "PFC frames that hosts received"),
        ("resent", "segments, by all hosts"),
        ("wrong_class", "packets that came with another DSCP than jobs have"),
        ("slowdown", "iteration time over idle; of idle, over what the job takes alone by its profile"),
    )
]


def tables(found: Acceptance, *, only_failed: bool = False) -> Iterator[Table]:
    """Yield a table for each part with a row for each verdict, or only for each failed one."""
    columns = (
        Column(kind="names"),
        Column(kind="words"),
        Column("found", kind="words", wraps=True),
        Column("expected", kind="words", wraps=True),
        Column("verdict", kind="words"),
    )
    for part, verdicts in found.parts.items():
        rows = [_row(each) for each in verdicts if each.verdict == "fail" or not only_failed]
        yield Table(columns, one_section(rows), TITLES[part], empty=f"{TITLES[part]}: nothing is beyond its limit.")


def summarize_outcome(found: Acceptance) -> str:
    """Return one sentence on the outcome of the test."""
    left_out = [part for part in PARTS if part not in found.parts]
    end = f" Not measured: {', '.join(left_out)}." if left_out else ""
    return f"It does not pass: {len(found.failures)} findings.{end}" if found.failures else f"It passes.{end}"


def render_page(found: Acceptance) -> str:
    """Return the HTML of the result's page."""
    about = f"Acceptance of {found.topology}"
    parts = [
        *(
            [page.fill_template("header", fidelity=found.fidelity, about=about, lead=_lead(found))]
            if found.fidelity
            else []
        ),
        page.bold_heading(summarize_outcome(found)),
        *page.titled_tables(tables(found)),
        page.named_values("What names mean", MEANINGS),
        page.list_html("Measured in:", found.runs),
        *([page.fill_template("fidelity", fidelity=found.fidelity)] if found.fidelity else []),
    ]
    return page.render_document(about, page.concatenate(parts))


def _lead(found: Acceptance) -> str:
    return " · ".join(f"{name} {value}" for name, value in found.where.items())


def _row(verdict: Verdict) -> tuple[Cell, ...]:
    return (
        Cell(verdict.of),
        Cell(verdict.name),
        Cell(verdict.found),
        Cell(verdict.expected),
        Cell(verdict.verdict or "", tone=TONES[verdict.verdict] if verdict.verdict else None),
    )
