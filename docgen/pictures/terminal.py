# SPDX-License-Identifier: Apache-2.0
"""A picture of the terminal: the table by which a run's testbeds stand beside the paper, of published runs, as an SVG.

It is drawn by the code that prints the table after a run, so it shows what users see.
"""

import re
from io import StringIO
from textwrap import dedent

from rich._export_format import CONSOLE_SVG_FORMAT

from analysis.expectations.results import Testbed
from analysis.render.screen import table_renderable
from analysis.reports.expectation_comparison import match_verdicts
from analysis.reports.publishing.publication import RESULTS, Publication
from analysis.reports.testbed_comparison import TestbedComparison, TestbedRun, expectation_tables
from roundabout.terminal.screen import Screen

EXPERIMENT, KINDS = "unfair-vgg19", ("packets", "lab")
COLUMNS = 96
# Rich loads a font from elsewhere, which a page of the site must not.
_FONT = re.compile(r"^ *@font-face \{\{.*?^ *\}\}\n", re.MULTILINE | re.DOTALL)
_FORMAT = _FONT.sub("", CONSOLE_SVG_FORMAT).replace("Fira Code, monospace", "monospace")


def draw() -> str:
    """Return the picture as SVG."""
    found = {kind: Publication(RESULTS / EXPERIMENT / kind) for kind in KINDS}
    comparison = TestbedComparison(
        experiment=EXPERIMENT,
        about="",
        source=None,
        changed=(),
        runs=tuple(_testbed_run(each) for each in found.values()),
        expectations=match_verdicts({kind: each.verdicts for kind, each in found.items()}),
        cells=(),
    )
    size = {"width": COLUMNS, "height": 25}  # both, or a dumb terminal has a size of its own
    screen = Screen(record=True, file=StringIO(), force_terminal=True, color_system="truecolor", no_color=False, **size)
    for table in expectation_tables(comparison):
        screen.print(table_renderable(table))
    drawn = screen.export_svg(title=f"make experiment NAME={EXPERIMENT}", code_format=_FORMAT, unique_id="terminal")
    return "".join(f"{line.rstrip()}\n" for line in dedent(drawn).splitlines())


def _testbed_run(published: Publication) -> TestbedRun:
    facts, testbed = published.facts, published.summary["testbed"]
    return TestbedRun(
        run=facts.run,
        testbed=Testbed.model_validate(testbed),
        trials=sum(facts.trials.values()),
        invalid_trials=(),
        disturbed_trials=(),
        revision=facts.revision,
    )
