# SPDX-License-Identifier: Apache-2.0
"""Tables and page of a judgement."""

from collections.abc import Iterator

from analysis.render import page
from analysis.render.tables import TONES, Cell, Column, Table, Tone, one_section
from roundabout.judge.figures import QUANTITIES, SCENES, Quantity, Scene
from roundabout.judge.judgement import VERDICT_WORDS, Judgement
from roundabout.runner.fidelity import Fidelity

TITLES: dict[Scene, str] = {
    "alone": "Alone, unshaped",
    "cost": "Cost",
    "fairness": "Fairness: flows on one link that marks",
    "marks": "How it answers marks",
    "loss": "How it answers losses",
    "incast": "Incast",
    "two-jobs": "Two training jobs",
    "three-jobs": "Three training jobs",
}
FIDELITY = Fidelity("emulated", "emulated: namespaces of one machine", VERDICT_WORDS)


def verdict_table(found: Judgement) -> Table:
    """Return a table with a row for each verdict."""
    rows = ([Cell(each.words), Cell(each.verdict, tone=TONES[each.verdict])] for each in found.verdicts)
    return Table(
        (Column(kind="words", wraps=True), Column("verdict", kind="words")),
        one_section(rows),
        f"{found.name}, beside cubic, dctcp and dcqcn",
    )


def requirements_tables(found: Judgement) -> Iterator[Table]:
    """Yield a table of the kernels and of what each lacks of the program's requirements, unless it does not compile."""
    if not found.kernels:
        return
    rows = [
        [Cell(kernel.name), Cell(", ".join(kernel.lacks) or "nothing", tone=Tone.BAD if kernel.lacks else Tone.GOOD)]
        for kernel in found.kernels
    ]
    columns = (Column("kernel", kind="names"), Column("lacks, by its BTF", kind="words"))
    yield Table(columns, one_section(rows), "What it needs of a kernel")


def figure_tables(found: Judgement) -> Iterator[Table]:
    """Yield a table of figures for each scene, with a row for each contestant."""
    for scene in SCENES:
        quantities = [each for each in QUANTITIES if each.scene == scene]
        rows = [
            [Cell(name), *(_cell(found, name, each) for each in quantities)]
            for name, figures in found.figures.items()
            if any(each.name in figures for each in quantities)
        ]
        if rows:
            columns = (Column(kind="names"), *(Column(each.title, each.form) for each in quantities))
            yield Table(columns, one_section(rows), TITLES[scene])


def describe_requirements(found: Judgement) -> str:
    """Return one sentence on the program's requirements on a kernel."""
    names = (*(f"{name}()" for name in found.needs.functions), *found.needs.fields)
    return f"It needs {', '.join(names)}." if names else ""


def meaning_table(found: Judgement) -> Table:
    """Return a table of the measured figures: the name in `--fail-if`, the column's title, and the meaning."""
    known = {name for figures in found.figures.values() for name in figures}
    rows = [
        [Cell(each.name), Cell(" ".join(each.title.split("\n"))), Cell(each.about)]
        for each in QUANTITIES
        if each.name in known
    ]
    columns = (Column("in --fail-if", kind="code"), Column("column", kind="words"), Column("meaning", kind="words"))
    return Table(columns, one_section(rows), "What columns mean")


def render_page(found: Judgement) -> str:
    """Return the HTML of the judgement's page."""
    lead = " · ".join(each for each in (found.program, found.system, found.run) if each)
    parts = [
        page.fill_template("header", fidelity=FIDELITY, about=f"{found.name}, judged", lead=lead),
        page.table_html(verdict_table(found)),
        page.paragraph(found.refused),
        *(
            part
            for table in (*figure_tables(found), *requirements_tables(found), meaning_table(found))
            for part in (page.fill_template("strong", text=table.title), page.table_html(table))
        ),
        page.paragraph(describe_requirements(found)),
        page.list_html("Trials of jobs that were invalid, and count for nothing:", found.invalid),
        page.fill_template("fidelity", fidelity=FIDELITY),
    ]
    return page.render_document(f"{found.name}, judged", page.concatenate(parts))


def _cell(found: Judgement, name: str, quantity: Quantity) -> Cell:
    spread = found.spread.get(name, {}).get(quantity.name)
    return Cell(found.figures[name].get(quantity.name), interval=spread)
