# SPDX-License-Identifier: Apache-2.0
"""Small SVGs: Matplotlib's figures with the same look in about a third of the bytes."""

import re
from collections.abc import Iterable
from xml.etree import ElementTree as ET

import numpy as np

from analysis.statistics.intervals import Array

MAX_OFF_PT = 0.25
"""Distance by which thinned lines and areas may be off, in points: a third of a pixel."""
_SVG = "http://www.w3.org/2000/svg"
_RUN = re.compile(r"[ML][^MLQCz]*(?:L[^MLQCz]*)*|[QC][^MLQCz]*|z")
_LETTER = re.compile(r"[MLQCz]")

ET.register_namespace("", _SVG)
ET.register_namespace("xlink", "http://www.w3.org/1999/xlink")


def shrink_svg(svg: str) -> str:
    """Return an SVG that Matplotlib drew with fewer points, shorter numbers, and each style once, as a class.

    Points that lie within `MAX_OFF_PT` of a line through others are left out. Coordinates are in steps of 0.1 points,
    which is less than a pixel. Metadata and groups without a meaning are left out, too.
    """
    root = ET.fromstring(svg)  # noqa: S314 - drawn here
    styles: dict[str, str] = {}
    _shrink(root, styles)
    sheet = root.find(f"{{{_SVG}}}defs/{{{_SVG}}}style")
    assert sheet is not None
    sheet.text = "\n".join([sheet.text or "", *(f".{name}{{{style}}}" for style, name in styles.items())])
    return ET.tostring(root, encoding="unicode")


def _shrink(element: ET.Element, styles: dict[str, str]) -> None:
    """Shorten an element and those in it, and add their styles with new names of classes to `styles`."""
    tag = element.tag.removeprefix(f"{{{_SVG}}}")
    if tag == "g":
        element.attrib.pop("id", None)
    if element.get("transform", "").startswith("rotate(-0 "):
        del element.attrib["transform"]
    for name in {"x", "y"}.intersection(element.attrib):
        element.set(name, _number(float(element.attrib[name])))
    if "d" in element.attrib:
        element.set("d", _shorten_path(element.attrib["d"]))
    if style := element.attrib.pop("style", None):
        element.set("class", styles.setdefault(style, f"c{len(styles)}"))
    element.tail = "\n"
    if tag not in ("text", "style"):
        element.text = "\n" if len(element) else None
        element[:] = [kept for child in element for kept in _shrink_child(child, styles)]


def _shrink_child(child: ET.Element, styles: dict[str, str]) -> list[ET.Element]:
    """Return what is kept of an element: nothing of metadata, and only the content of a group without attributes."""
    if child.tag == f"{{{_SVG}}}metadata":
        return []
    _shrink(child, styles)
    return [child] if child.tag != f"{{{_SVG}}}g" or (child.attrib and len(child)) else list(child)


def _shorten_path(data: str) -> str:
    """Return a path in relative coordinates, without the points that lines can do without.

    Matplotlib writes absolute coordinates of lines (M, L), curves (Q, C) and ends (z), and an M after each end.
    """
    parts, at = [], np.zeros(2, int)
    for run in _RUN.findall(data):
        points = np.array(_LETTER.sub(" ", run).split(), float).reshape(-1, 2)
        if run[0] in "ML":
            points = _thin(points)
        tenths = np.rint(10 * points).astype(int)
        if run[0] == "M":
            at, tenths = tenths[0], tenths[1:]
            parts.append(f"M{_numbers(at)}")
        if run[0] in "ML":
            parts += map(_line, np.diff(tenths, axis=0, prepend=[at]))
        else:
            parts.append(run[0].lower() + _numbers((tenths - at).ravel()))
        at = tenths[-1] if len(tenths) else at
    return "".join(parts)


def _line(tenths: Array) -> str:
    """Return a relative line in tenths of a point, as a horizontal or vertical one if it is."""
    across, down = tenths
    if down == 0:
        return f"h{_numbers([across])}"
    return f"v{_numbers([down])}" if across == 0 else f"l{_numbers(tenths)}"


def _numbers(tenths: Iterable[float]) -> str:
    return " ".join(_number(each / 10) for each in tenths)


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _thin(points: Array) -> Array:
    """Return the points of a line by Ramer, Douglas and Peucker's algorithm, within `MAX_OFF_PT` of all points."""
    kept = np.zeros(len(points), bool)
    kept[[0, -1]] = True
    spans = [(0, len(points) - 1)]
    while spans:
        first, last = spans.pop()
        off_pt = _distances(points[first : last + 1])
        farthest = first + int(off_pt.argmax())
        if off_pt[farthest - first] > MAX_OFF_PT:
            kept[farthest] = True
            spans += [(first, farthest), (farthest, last)]
    return points[kept]


def _distances(points: Array) -> Array:
    """Return each point's distance from the line between the first and the last point."""
    along, away = points[-1] - points[0], points - points[0]
    length = along @ along
    share = np.clip(away @ along / length, 0, 1) if length else np.zeros(len(points))
    return np.asarray(np.hypot(*(away - np.outer(share, along)).T))
