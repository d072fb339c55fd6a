# SPDX-License-Identifier: Apache-2.0
"""Results as HTML, escaped by Jinja2. A page loads nothing from other files or servers."""

import base64
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from io import BytesIO, StringIO
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup, escape
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from analysis.render.figure_data import csv_of, named_series
from analysis.render.svg import shrink_svg
from analysis.render.tables import SOFT_BREAK, SOFT_HYPHEN, Table, format_interval


class Html(Markup):
    """Markup that a notebook displays as HTML."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(self)


TEMPLATES = Path(__file__).parent / "templates"
HEADING = re.compile(r'<h2 id="([^"]+)">(.*?)</h2>')
FIGURE = re.compile("<figcaption>")
CODE = re.compile("`([^`]+)`")
NO_FIGURE = "Nothing was measured that could be drawn here."
NOTHING = Html("<p>Too little was measured for this.</p>")
_COLLECTED: ContextVar[list[tuple[Figure, str]] | None] = ContextVar("_COLLECTED", default=None)


@contextmanager
def collect_figures() -> Iterator[list[tuple[Figure, str]]]:
    """Yield a list, to which every figure that becomes HTML in this block is added with its description."""
    found: list[tuple[Figure, str]] = []
    token = _COLLECTED.set(found)
    try:
        yield found
    finally:
        _COLLECTED.reset(token)


def render_document(title: str, body: str) -> str:
    """Return a complete HTML document around `body`, which is markup.

    The document has a table of contents if `body` has headings, and its figures are numbered.
    """
    headings = [(id_, Markup(text)) for id_, text in HEADING.findall(body)]  # noqa: S704 - of the body, as below
    contents = fill_template("contents", headings=headings) if headings else Html("")
    numbers = count(1)
    numbered = FIGURE.sub(lambda found: f"{found[0]}<b>Figure {next(numbers)}.</b> ", body)
    return fill_template("page", title=title, contents=contents, body=Markup(numbered))  # noqa: S704 - of ours


def style_block() -> Html:
    """Return the page's style as a block that applies only to a notebook's output in JupyterLab."""
    style = _TEMPLATES.get_template("page.css").render().replace(":root", "&")
    return Html(f"<style>.jp-RenderedHTML {{ {style} }}</style>")


def table_html(table: Table) -> Html:
    """Return a table as HTML that scrolls on a narrow page; intervals and notes stand below their figures."""
    table = table.for_medium("page")
    if not table.sections:
        return render_part("paragraph", text=table.empty) if table.empty else NOTHING
    return fill_template("table", table=table)


def captioned_table_html(table: Table) -> Html:
    """Return a table as HTML with its caption as a paragraph below it."""
    caption = f"{table.caption[0].upper()}{table.caption[1:]}." if table.caption and table.sections else ""
    return concatenate([table_html(table), *([paragraph(caption)] if caption else [])])


def figure_html(figure: Figure | None, caption: str, alt: str, missing: str = NO_FIGURE) -> Html:
    """Return a figure as HTML with its caption, and links to its data as CSV and to a PDF. `caption` may be markup.

    Without a figure return the sentence `missing`, which says why.
    """
    if figure is None:
        return render_part("paragraph", text=missing)
    _lay_out(figure)
    if (collected := _COLLECTED.get()) is not None:
        collected.append((figure, alt))
    files = [
        ("csv", "text/csv", _base64(csv_of(figure).encode())),
        ("pdf", "application/pdf", save_figure(figure, "pdf", CreationDate=None)),
    ]
    with named_series(figure):
        svg = save_figure(figure, "svg", Date=None)
    name = re.sub(r"\W+", "-", alt.lower()).strip("-")[:60]
    return fill_template("figure", svg=svg, files=files, name=name, caption=caption, alt=alt)


def concatenate(parts: Iterable[Html]) -> Html:
    """Return the parts joined in order; without parts a sentence that too little was measured."""
    return Html("").join(parts) or NOTHING


def markdown_html(text: str) -> Html:
    """Return Markdown as HTML, in which each heading has an id."""
    markdown = MarkdownIt("commonmark").enable("table")
    tokens = markdown.parse(text)
    for opening, words in pairwise(tokens):
        if opening.type == "heading_open":
            opening.attrSet("id", words.content.replace(" ", "-"))
    return Html(markdown.renderer.render(tokens, markdown.options, {}))


def paragraph(words: str) -> Html:
    """Return a paragraph of plain text; an empty string without text."""
    return render_part("paragraph", text=words) if words else Html("")


def title_html(title: str, lead: str) -> Html:
    """Return a page's title and a line below it."""
    return render_part("title", title=title, lead=lead)


def bold_heading(words: str) -> Html:
    """Return a heading in bold; an empty string without text."""
    return render_part("strong", text=words) if words else Html("")


def titled_tables(tables: Iterable[Table]) -> list[Html]:
    """Return each table below its title, with its caption."""
    return [part for table in tables for part in (bold_heading(table.title), captioned_table_html(table))]


def svg_of(figure: Figure) -> str:
    """Return a figure as a small SVG, the same for the same figure.

    Its text is text, because glyphs as paths would be most of it.
    """
    with mpl.rc_context({"svg.fonttype": "none"}):
        buffer = StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return shrink_svg(buffer.getvalue())


def named_values(what: str, pairs: Sequence[tuple[str, str]]) -> Html:
    """Return a paragraph that lists names with their values; an empty string without pairs."""
    return render_part("by_name", what=what, pairs=pairs) if pairs else Html("")


def list_html(title: str, lines: Sequence[str]) -> Html:
    """Return a list below a title; an empty string without lines."""
    return render_part("list", title=title, lines=lines) if lines else Html("")


def fill_template(template: str, **values: Any) -> Html:
    """Return a template of `templates/` filled with values, which are escaped unless they are markup."""
    return Html(_TEMPLATES.get_template(f"{template}.html").render(**values))


def render_part(part: str, **values: Any) -> Html:
    """Return a macro of `templates/parts.html` filled with values, which are escaped unless they are markup."""
    return Html(getattr(_TEMPLATES.get_template("parts.html").module, part)(**values))


def _lay_out(figure: Figure) -> None:
    """Find the figure's layout, and keep it. With a layout engine, each file would take a further drawing."""
    if engine := figure.get_layout_engine():
        FigureCanvasSVG(figure)  # text has the extent of this canvas
        engine.execute(figure)
        figure.set_layout_engine(None)


def save_figure(figure: Figure, kind: str, **metadata: None) -> str:
    """Return a figure's file of a kind (svg, pdf) in base64."""
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
    loader=FileSystemLoader(TEMPLATES),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=StrictUndefined,
)
_TEMPLATES.filters |= {"broken": _break_title, "coded": _mark_code, "span": format_interval}
