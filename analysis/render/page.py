# SPDX-License-Identifier: Apache-2.0
"""Results as HTML, which Jinja2 escapes. Nothing on a page is loaded from elsewhere."""

import base64
import re
from collections.abc import Iterable, Sequence
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from matplotlib.figure import Figure

from analysis.render.figure_data import csv_of
from analysis.render.tables import SOFT_BREAK, SOFT_HYPHEN, Table, format_interval


class Html(Markup):
    """Markup that a notebook displays as HTML."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(self)


TEMPLATES = Path(__file__).parent / "templates"
HEADING = re.compile(r'<h2 id="([^"]+)">(.*?)<a class="anchor-link"')
FIGURE = re.compile("<figcaption>")
CODE = re.compile("`([^`]+)`")
NOTHING = Html("<p>Too little was measured for this.</p>")


def render_document(title: str, body: str) -> str:
    """Return a complete document around `body`, which is markup.

    With its contents, if it has any, and figures numbered.
    """
    headings = [(id_, Markup(text)) for id_, text in HEADING.findall(body)]  # noqa: S704 - of the body, as below
    contents = fill_template("contents", headings=headings) if headings else Html("")
    numbers = count(1)
    numbered = FIGURE.sub(lambda found: f"{found[0]}<b>Figure {next(numbers)}.</b> ", body)
    return fill_template("page", title=title, contents=contents, body=Markup(numbered))  # noqa: S704 - nbconvert's, of ours


def style_block() -> Html:
    """Return the page's style, for the output of a notebook in JupyterLab alone."""
    style = _TEMPLATES.get_template("page.css").render().replace(":root", "&")
    return Html(f"<style>.jp-RenderedHTML {{ {style} }}</style>")


def table_html(table: Table) -> Html:
    """Return a table that scrolls on a narrow page; intervals and notes are under their figures."""
    table = table.for_medium("page")
    if not table.sections:
        return fill_template("paragraph", text=table.empty) if table.empty else NOTHING
    return fill_template("table", table=table)


def figure_html(figure: Figure | None, caption: str, alt: str) -> Html:
    """Return a figure with its caption, its data as CSV and itself as PDF. `caption` may be markup."""
    if figure is None:
        return Html("<p>Nothing was measured that could be drawn here.</p>")
    svg = _save_figure(figure, "svg", Date=None)
    figure.set_layout_engine("none")  # keeps the layout that it has by now, which takes longest to find
    files = [
        ("csv", "text/csv", _base64(csv_of(figure).encode())),
        ("pdf", "application/pdf", _save_figure(figure, "pdf", CreationDate=None)),
    ]
    name = re.sub(r"\W+", "-", alt.lower()).strip("-")[:60]
    return fill_template("figure", svg=svg, files=files, name=name, caption=caption, alt=alt)


def concatenate(parts: Iterable[Html]) -> Html:
    """Return the parts one after the other; a line if there is none."""
    return Html("").join(parts) or NOTHING


def paragraph(words: str) -> Html:
    """Return a paragraph of plain words; empty without any."""
    return fill_template("paragraph", text=words) if words else Html("")


def bold_heading(words: str) -> Html:
    """Return the subject of the following in bold; empty without words."""
    return fill_template("strong", text=words) if words else Html("")


def named_values(what: str, pairs: Sequence[tuple[str, str]]) -> Html:
    """Return a paragraph of several things by name; empty without any."""
    return fill_template("by_name", what=what, pairs=pairs) if pairs else Html("")


def list_html(title: str, lines: Sequence[str]) -> Html:
    """Return a list under a line that names it; empty without items."""
    return fill_template("list", title=title, lines=lines) if lines else Html("")


def fill_template(template: str, **values: Any) -> Html:
    """Return a template of `templates/` with its values, which are escaped unless they are markup."""
    return Html(_TEMPLATES.get_template(f"{template}.html").render(**values))


def _save_figure(figure: Figure, kind: str, **metadata: None) -> str:
    buffer = BytesIO()
    figure.savefig(buffer, format=kind, metadata=metadata)
    return _base64(buffer.getvalue())


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _break_title(words: str) -> Markup:
    """Return a column's title, with its line breaks."""
    lines = words.replace(SOFT_BREAK, "").replace(SOFT_HYPHEN, "").split("\n")
    return Markup("<br>").join(lines)


def _mark_code(words: str) -> Markup:
    """Return words with backticks as code."""
    return Markup(CODE.sub(r"<code>\1</code>", str(escape(words))))  # noqa: S704 - escaped


_TEMPLATES = Environment(
    loader=FileSystemLoader([TEMPLATES, TEMPLATES / "parts"]),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=StrictUndefined,
)
_TEMPLATES.filters |= {"broken": _break_title, "coded": _mark_code, "span": format_interval}
