# SPDX-License-Identifier: Apache-2.0
"""Small SVGs: shorter than Matplotlib's, with the same lines, areas, texts and styles."""

import re
from io import StringIO
from xml.etree import ElementTree as ET

import matplotlib as mpl
import numpy as np
import pytest

from analysis.render import svg as svgs
from analysis.render.style import new_figure
from analysis.render.svg import MAX_OFF_PT, shrink_svg

pytestmark = pytest.mark.unit

SVG = "{http://www.w3.org/2000/svg}"
STEP_PT = 0.1
HEAD = '<svg xmlns="http://www.w3.org/2000/svg"><defs><style>*{a: b}</style></defs>'


@pytest.fixture(scope="module")
def drawn():
    """A figure with a long line, an area, points and a rotated text, as Matplotlib writes it."""
    figure, (panel,) = new_figure(1, 1, 3)
    x = np.linspace(0, 1, 3000)
    panel.plot(x, np.sin(300 * x), path_effects=None)
    panel.fill_between(x, np.sin(20 * x), np.sin(20 * x) + 0.3)
    panel.plot([0.2, 0.4], [0.5, -0.5], "o")
    panel.set_ylabel("R² of  log t")
    buffer = StringIO()
    with mpl.rc_context({"svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def paths(svg):
    """Return the style and the points of each subpath, by each path that has lines only."""
    root = ET.fromstring(svg)
    rules = dict(re.findall(r"^\.(c\d+)\{(.*)\}$", root.find(f".//{SVG}style").text, re.MULTILINE))
    for path in root.iter(f"{SVG}path"):
        if not set("QCqc") & set(path.get("d")):
            style = path.get("style") or rules.get(path.get("class"), "")
            yield style, [points for points in subpaths(path.get("d")) if len(points)]


def subpaths(data):
    points = []
    for command, numbers in re.findall(r"([MLlhvz])([^MLlhvz]*)", data):
        values = np.array(numbers.split(), float)
        if command == "M":
            yield np.array(points)
            points = [values]
        elif command != "z":
            start = np.zeros(2) if command == "L" else points[-1]
            points.append(start + {"h": [*values, 0], "v": [0, *values]}.get(command, values))
    yield np.array(points)


def distances(points, line):
    """Return the distance of each point from the nearest part of a line."""
    starts, along = line[:-1], np.diff(line, axis=0)
    away = points[:, None] - starts
    lengths = np.maximum((along**2).sum(axis=1), 1e-12)
    share = np.clip((away * along).sum(axis=2) / lengths, 0, 1)
    return np.hypot(*np.moveaxis(away - share[..., None] * along, 2, 0)).min(axis=1)


def test_lines_and_areas_stay_where_they_are_with_their_styles(drawn):
    before, after = list(paths(drawn)), list(paths(shrink_svg(drawn)))
    assert [style for style, _ in before] == [style for style, _ in after]
    compared = 0
    for (_, lines), (_, short) in zip(before, after, strict=True):
        for line, other in zip(lines, short, strict=True):
            assert max(distances(line, other)) <= MAX_OFF_PT + STEP_PT
            assert max(distances(other, line)) <= STEP_PT
            compared += len(line) > 1000
    assert compared == 2


def test_an_svg_becomes_a_fourth(drawn):
    assert len(shrink_svg(drawn)) < len(drawn) / 4


def test_lines_without_detail_lose_their_points(monkeypatch):
    svg = f'{HEAD}<path d="M 0 0 L 5 0.2 L 10 0 L 10 9 L 12 11"/></svg>'
    assert 'd="M0 0h10v9l2 2"' in shrink_svg(svg)
    monkeypatch.setattr(svgs, "MAX_OFF_PT", 0.1)
    assert 'd="M0 0l5 0.2l5 -0.2v9l2 2"' in shrink_svg(svg)


def test_curves_and_closed_paths_keep_their_points():
    svg = f'{HEAD}<path d="M 0 3 C 0.8 3 1.6 2.7 2.1 2.1 Q 3 3 4 2.04 L 5 5 z M 1 1 L 2 2"/></svg>'
    assert 'd="M0 3c0.8 0 1.6 -0.3 2.1 -0.9q0.9 0.9 1.9 -0.1l1 3zM1 1l1 1"' in shrink_svg(svg)


def test_texts_and_references_stay(drawn):
    before, after = (ET.fromstring(svg) for svg in (drawn, shrink_svg(drawn)))
    assert [each.text for each in before.iter(f"{SVG}text")] == [each.text for each in after.iter(f"{SVG}text")]
    ids = {each.get("id") for each in after.iter()} - {None}
    assert set(re.findall(r"(?:url\(#|href=\"#)([^)\"]+)", shrink_svg(drawn))) == ids


def test_equal_styles_become_one_class_and_groups_without_attributes_go():
    svg = (
        f'{HEAD}<g id="axes_1"><g id="a"/><text style="fill: red" x="1.26">a  b</text></g><g style="fill: red"/></svg>'
    )
    assert shrink_svg(svg).replace("\n", "") == (
        '<svg xmlns="http://www.w3.org/2000/svg"><defs><style>*{a: b}.c0{fill: red}</style></defs>'
        '<text x="1.3" class="c0">a  b</text></svg>'
    )
