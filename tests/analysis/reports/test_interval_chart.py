# SPDX-License-Identifier: Apache-2.0
"""Charts of intervals place figures by their values, cut off long intervals, and escape what they show."""

import re

import pytest

from analysis.render.interval_chart import ChartAxis, ChartRow, Mark, chart_html

pytestmark = pytest.mark.unit


def chart(*marks, **axis):
    """A chart with a row for each mark."""
    rows = [ChartRow((("name", ""),), (mark,), "text") for mark in marks]
    return chart_html(rows, ChartAxis("axis", **axis), "what it shows")


def places(html):
    """The places of the marks, in percent."""
    return [float(place) for place in re.findall(r'<circle cx="([\d.]+)%"', html)]


def intervals(html):
    """The ends of the intervals, in percent."""
    found = re.findall(r'class="interval" x1="([\d.]+)%" x2="([\d.]+)%"', html)
    return [tuple(map(float, ends)) for ends in found]


def test_equal_ratios_are_equal_distances_on_a_logarithmic_axis():
    low, middle, high = places(chart(Mark(0.5), Mark(1.0), Mark(2.0), logarithmic=True))
    assert high - middle == pytest.approx(middle - low, abs=0.02)
    low, middle, high = places(chart(Mark(0.5), Mark(1.0), Mark(2.0)))
    assert high - middle == pytest.approx(2 * (middle - low), abs=0.03)


def test_an_open_interval_reaches_the_edge_and_an_exact_figure_has_none():
    assert [ends[0] for ends in intervals(chart(Mark(1.0, (None, 1.2)), Mark(1.1, (1.1, 1.1))))] == [0.0]


@pytest.mark.parametrize("logarithmic", [True, False])
def test_a_very_long_interval_does_not_squeeze_the_figures(logarithmic):
    html = chart(Mark(1.0, (-1000.0, 1000.0)), Mark(1.5), logarithmic=logarithmic)
    first, second = places(html)
    assert second - first > 10
    assert intervals(html) == [(0.0, 100.0)]


def test_one_figure_alone_stands_within_the_chart():
    assert 0 < places(chart(Mark(1.0)))[0] < 100
    assert 0 < places(chart(Mark(0.0)))[0] < 100


def test_text_is_escaped():
    row = ChartRow((("<name>", ""),), (Mark(1.0, about="<about>"),), "<text>", "<note>", "<group>")
    html = chart_html([row], ChartAxis("<axis>"), "<alt>", [("<key>", "#000000")])
    for word in ("name", "about", "text", "note", "group", "axis", "alt", "key"):
        assert f"&lt;{word}&gt;" in html
        assert f"<{word}>" not in html
