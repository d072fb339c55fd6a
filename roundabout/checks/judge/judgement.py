# SPDX-License-Identifier: Apache-2.0
"""The result of judging one congestion control."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from analysis.render.interval_chart import ChartAxis, ChartRow, Mark, chart_html
from analysis.render.page import Html
from analysis.render.style import INK, JOBS, SOFT
from analysis.render.tables import Cell, Column, Table, Tone, one_section
from roundabout.checks.check import Check
from roundabout.checks.judge.figures import QUANTITIES, SCENES, Figures, Quantity
from roundabout.checks.judge.kernel_requirements import KernelCheck, Requirements
from roundabout.checks.judge.session import Spread
from roundabout.runner.fidelity import Fidelity

PROGRAM = "program"
CHARTS = {
    "share, or fairness index": {
        *(f"{what}_{count}" for what in ("jain", "use") for count in (2, 8, 32)),
        *("use_marks", "use_loss", "dip_marks", "dip_loss", "window_marks", "window_loss"),
    },
    "ratio, less is better": {
        *("cost", "incast"),
        *(f"{jobs}_{what}" for jobs in ("two_jobs", "three_jobs") for what in ("mean", "worst")),
    },
}
"""The quantities of each chart, by the label of its axis."""
FIDELITY = Fidelity(
    "emulated",
    "emulated: namespaces of one machine",
    "A lab's verdict is not a NIC's: this is kernel TCP on emulated links of one machine, a hundredth as fast. "
    "What fails here fails elsewhere; what passes here has yet to be shown there.",
)


@dataclass(kw_only=True)
class Judgement(Check):
    """The figures of each contestant, the judged one first.

    `refused` is the message if the compiler or the kernel rejected the program; then there are no figures. `spread` has
    the range of figures over several rounds. `invalid` names invalid trials of jobs.
    """

    SCHEMA = 2
    RESULT = "judgement"
    PARTS = SCENES
    TITLES: ClassVar = {
        PROGRAM: "The program",
        "alone": "Alone, unshaped",
        "cost": "Cost",
        "fairness": "Fairness: flows on one link that marks",
        "marks": "How it answers marks",
        "loss": "How it answers losses",
        "incast": "Incast",
        "two-jobs": "Two training jobs",
        "three-jobs": "Three training jobs",
    }

    name: str
    program: str
    system: str
    fidelity: Fidelity | None = FIDELITY
    needs: Requirements = field(default_factory=Requirements)
    kernels: tuple[KernelCheck, ...] = ()
    refused: str = ""
    figures: dict[str, Figures] = field(default_factory=dict)
    spread: Spread = field(default_factory=dict)
    invalid: list[str] = field(default_factory=list)

    @property
    def title(self) -> str:
        """Return the page's title."""
        return f"{self.name}, judged"

    @property
    def lead(self) -> str:
        """Return the program's file and the system."""
        return f"{self.program} · {self.system}"

    def figure_table(self, part: str) -> Table | None:
        """Return a table of a scene's figures by contestant, or of the kernels and of what each lacks."""
        if part == PROGRAM:
            return self._kernel_table() if self.kernels else None
        quantities = [each for each in QUANTITIES if each.scene == part]
        rows = [
            [Cell(name), *(self._cell(name, each) for each in quantities)]
            for name, figures in self.figures.items()
            if any(each.name in figures for each in quantities)
        ]
        columns = (Column(kind="names"), *(Column(each.title, each.form) for each in quantities))
        return Table(columns, one_section(rows), self.TITLES[part])

    def charts(self) -> Iterable[Html]:
        """Yield a chart of shares and indices of at most 1, and one of ratios, of each contestant."""
        for title, names in CHARTS.items():
            rows = [row for each in QUANTITIES if each.name in names and (row := self._chart_row(each))]
            if rows:
                yield chart_html(rows, ChartAxis(title, 1.0), f"{title}, by contestant", tuple(self._colours.items()))

    @property
    def _colours(self) -> dict[str, str]:
        """Return each contestant's color; the judged one has that of text."""
        return dict(zip(self.figures, (INK, *JOBS), strict=False))

    def _chart_row(self, quantity: Quantity) -> ChartRow | None:
        """Return a row with each contestant's figure, the judged one's on top and as text; None without any."""
        found = {name: figures.get(quantity.name) for name, figures in self.figures.items()}
        marks = [
            Mark(
                value,
                self.spread.get(name, {}).get(quantity.name),
                self._colours.get(name, SOFT),
                f"{name}: {value:.3g}",
            )
            for name, value in reversed(found.items())
            if value is not None
        ]
        own = found.get(self.name)
        text = "" if own is None else f"{own:{quantity.form}}"
        scene, title = self.TITLES[quantity.scene], " ".join(quantity.title.split())
        count = quantity.name.rpartition("_")[2]
        if count.isdigit() and count not in title:
            title = f"{title}, {count} flows"
        return ChartRow(((title, ""),), tuple(marks), text, group=scene) if marks else None

    def meanings(self) -> Iterable[tuple[str, str]]:
        """Yield the names of measured figures in `--fail-if`, with their titles and meanings."""
        for each in QUANTITIES:
            if any(each.name in figures for figures in self.figures.values()):
                yield each.name, f"{' '.join(each.title.split())}: {each.about}"

    def notes(self) -> Iterable[str]:
        """Yield the reason for a refusal, the program's requirements on a kernel, and the invalid trials."""
        if self.refused:
            yield self.refused
        if names := (*(f"{name}()" for name in self.needs.functions), *self.needs.fields):
            yield f"It needs {', '.join(names)}."
        for each in self.invalid:
            yield f"This trial of jobs is invalid, and counts for nothing: {each}"

    def _kernel_table(self) -> Table:
        rows = [
            [Cell(each.name), Cell(", ".join(each.lacks) or "nothing", tone=Tone.BAD if each.lacks else Tone.GOOD)]
            for each in self.kernels
        ]
        columns = (Column("kernel", kind="names"), Column("lacks, by its BTF", kind="words"))
        return Table(columns, one_section(rows), "What it needs of a kernel")

    def _cell(self, name: str, quantity: Quantity) -> Cell:
        spread = self.spread.get(name, {}).get(quantity.name)
        return Cell(self.figures[name].get(quantity.name), interval=spread)
