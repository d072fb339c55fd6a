# SPDX-License-Identifier: Apache-2.0
"""`roundabout compare --testbeds`: the newest run of an experiment on each testbed, beside the paper."""

import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.expectations.results import DisturbedTrial
from analysis.reports.expectation_comparison import expectation_lines
from analysis.reports.summary import summarize_run
from analysis.reports.testbed_comparison import (
    TestbedComparison as Comparison,
    compare_runs,
    compare_testbeds,
    count_verdicts,
    table,
)
from analysis.reports.testbed_page import expectations_chart, render_comparison, speedups_chart
from roundabout.cli.main import main
from roundabout.spec.loader import build_experiment
from roundabout.store import Run
from roundabout.terminal.screen import Screen
from tests.computed_runs import RUNNER
from tests.packets.small_runs import FILE, run

pytestmark = pytest.mark.unit

SPEEDUP = {"what": "speedup of median iteration time", "of": "unfair", "over": "fair"}
EXPECTED: list[dict[str, Any]] = [
    {**SPEEDUP, "paper": 1.23, "tolerance": 0.08, "basis": "predicted"},
    {"what": "first-iteration bandwidth", "of": "fair", "row": {"j1": 21, "j2": 21}, "within": 0.15, "basis": "fitted"},
    {**SPEEDUP, "at_most": 2, "basis": "predicted"},
]
SHORT = {**FILE, "iterations": 2, "repetitions": 1, "expect": EXPECTED}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on the flow-level model, and one packet by packet."""
    path = tmp_path_factory.mktemp("testbeds")
    RUNNER.start(build_experiment(SHORT), "small", path)
    run(SHORT, path)
    return path


@pytest.fixture(scope="module")
def comparison(folder: Path) -> Comparison:
    return compare_testbeds("small", folder)


def runs_by_kind(folder: Path) -> dict[str, Run]:
    return {each.manifest["testbed"]["kind"]: each for each in Run.all(folder)}


def test_each_testbed_has_a_column_of_its_newest_run(comparison: Comparison) -> None:
    assert [each.testbed.kind for each in comparison.runs] == ["fluid", "packets"]
    alone = next(each for each in comparison.cells if (each.levels, each.job) == ({"variant": "alone"}, "j1"))
    assert alone.testbeds["fluid"].median_ms == pytest.approx(55)
    assert alone.testbeds["packets"].median_ms == pytest.approx(55, rel=0.01)
    fair = next(each for each in comparison.cells if (each.levels, each.job) == ({"variant": "fair"}, "j1"))
    assert fair.testbeds["packets"].speedup is None


def test_each_expectation_has_the_papers_figure_and_each_testbeds(comparison: Comparison, folder: Path) -> None:
    figures = [each for each in comparison.expectations if not each.claim]
    assert [each.expected for each in figures] == ["1.23 ± 0.08", "j1 21, j2 21 ± 15 %", "at most 2"]
    for each, stated in zip(figures, EXPECTED, strict=True):
        assert (each.basis, set(each.testbeds)) == (stated["basis"], {"fluid", "packets"})
    for kind, stored in runs_by_kind(folder).items():
        own = [each for each in summarize_run(stored).expectations if not each.claim]
        assert [each.testbeds[kind].parts for each in figures] == [each.parts for each in own]
        assert count_verdicts(comparison)[kind] == {
            word: sum(each.verdict == word for each in own) for word in {each.verdict for each in own}
        }


def test_an_expectation_of_several_figures_has_a_line_for_each(comparison: Comparison) -> None:
    lines = list(expectation_lines([each for each in comparison.expectations if not each.claim]))
    assert [(line.part, line.paper_text, line.tolerance_text) for line in lines] == [
        ("", "1.23", "± 0.08"),
        ("j1", "21", "± 3.15 Gbit/s"),
        ("j2", "21", "± 3.15 Gbit/s"),
        ("", "at most 2", ""),
    ]
    assert [bool(line.about) for line in lines] == [True, True, False, True]
    assert lines[0].figures["fluid"].text == "1.00"
    assert lines[0].figures["fluid"].verdict == "fail"
    assert (lines[1].figures["fluid"].text, lines[1].figures["fluid"].verdict) == ("20.3", "pass")


def test_figures_that_no_testbed_measured_have_no_line(comparison: Comparison) -> None:
    row = next(each for each in comparison.expectations if each.expected.startswith("j1 21"))
    one, other = row.testbeds.values()
    unmeasured = replace(one.parts[1], measured=None, ci95=None, verdict="not measured")
    half = [replace(each, parts=(each.parts[0], unmeasured)) for each in (one, other)]
    lines = list(expectation_lines([row.model_copy(update={"testbeds": dict(zip(row.testbeds, half, strict=True))})]))
    assert [(line.part, line.figures["fluid"].text) for line in lines] == [("", "20.3")]
    none = [replace(each, parts=(unmeasured,), verdict="not measured", found="") for each in (one, other)]
    (line,) = expectation_lines([row.model_copy(update={"testbeds": dict(zip(row.testbeds, none, strict=True))})])
    assert {each.verdict for each in line.figures.values()} == {"not measured"}


def test_a_verdict_on_disturbed_trials_is_marked(comparison: Comparison) -> None:
    first = comparison.expectations[0]
    disturbed = {**first.testbeds, "packets": replace(first.testbeds["packets"], disturbed=("fair",))}
    marked = first.model_copy(update={"testbeds": disturbed})
    run = comparison.runs[0].model_copy(
        update={"disturbed_trials": (DisturbedTrial(key="a1", name="fair", reason="late", effect=0.04, counted=False),)}
    )
    found = comparison.model_copy(update={"expectations": (marked,), "runs": (run, *comparison.runs[1:])})
    assert "predicted; disturbed: packets" in render_comparison(found)
    assert "fair: late (±4 %, in no figure)" in render_comparison(found)
    assert "disturbed: packets" in shown(found, 80)
    assert first.note == "predicted"


def test_runs_of_different_documents_are_matched_by_content(folder: Path, tmp_path: Path) -> None:
    changed = [{**EXPECTED[0], "tolerance": 0.5}, {**EXPECTED[1], "basis": "predicted"}, EXPECTED[2]]
    other = RUNNER.start(build_experiment({**SHORT, "expect": changed}), "small", tmp_path)
    found = compare_runs([runs_by_kind(folder)["packets"], other])
    assert found.changed == ("expect",)
    where = {(each.about, each.expected): set(each.testbeds) for each in found.expectations if not each.claim}
    about = "speedup of median iteration time: unfair over fair"
    assert where == {
        (about, "1.23 ± 0.5"): {"fluid"},
        (about, "1.23 ± 0.08"): {"packets"},
        ("first-iteration bandwidth: fair", "j1 21, j2 21 ± 15 %"): {"fluid", "packets"},
        (about, "at most 2"): {"fluid", "packets"},
    }
    assert "different documents of small, which differ in expect" in render_comparison(found)
    assert "different documents" in shown(found, 100)


def shown(comparison: Comparison, width: int) -> str:
    out = io.StringIO()
    Screen(file=out, width=width).print(table(comparison))
    return out.getvalue()


@pytest.mark.parametrize("width", [80, 100])
def test_the_screen_has_every_figure_with_its_mark(comparison: Comparison, width: int) -> None:
    text = shown(comparison, width)
    assert all(len(line) <= width for line in text.splitlines())
    assert "computed: packet by packet" in text
    (line,) = [line for line in text.splitlines() if line.startswith(" speedup") and " 1.23 " in line]
    assert "✗ 1.00" in line
    assert "± 0.08" in text
    # Titles are wider than these tables, and stay in one line.
    assert "\nMedian iteration time in ms, with 95 % intervals" in text
    assert "\nSpeed-up of the median over the same testbed's baseline" in text


def test_the_page_stands_alone_and_leads_to_each_report(comparison: Comparison) -> None:
    page = render_comparison(comparison, "small/")
    for each in comparison.runs:
        assert f'href="small/{each.run}/report.html"' in page
        assert f'<span class="stamp computed">{each.testbed.kind}: {each.testbed.fidelity.stamp}</span>' in page
    assert not re.search(r'(src|href)="https?:', page)
    assert 'verdict fail">fail' in page
    assert page.count('<h2 id="') == 3


def row_texts(chart: str) -> list[list[str]]:
    """Return the words of each row's cells, without the axis."""
    rows = re.findall(r"<tr>(.*?)</tr>", chart.split("<tfoot>", maxsplit=1)[0], re.DOTALL)
    return [[re.sub(r"<title>.*?</title>|<[^>]+>", "", cell).strip() for cell in row.split("</td>")] for row in rows]


def test_the_chart_beside_the_paper_has_a_row_for_each_printed_figure(comparison: Comparison) -> None:
    chart = expectations_chart(comparison)
    assert [row[0] for row in row_texts(chart)] == [
        "speedup of median iteration time: unfair over fair",
        "first-iteration bandwidth: fair, j1",
        "first-iteration bandwidth: fair, j2",
    ]
    assert re.findall("<title>fluid: (.*?)</title>", chart)[0] == f"{1 / 1.23:.3g}"
    assert chart.count("<circle") == 2 * 3
    assert chart.count('class="band"') == 3


def test_the_chart_of_speed_ups_has_a_row_for_each_job_and_variant(comparison: Comparison) -> None:
    shown = [
        (cell.levels["variant"], cell.job, " · ".join(f"{own.speedup:.2f}" for own in cell.testbeds.values()))
        for cell in comparison.cells
        if all(own.speedup is not None for own in cell.testbeds.values())
    ]
    assert shown
    assert [(row[0], row[1], row[3]) for row in row_texts(speedups_chart(comparison))] == shown


def test_an_experiment_without_expectations_has_a_page(tmp_path: Path) -> None:
    plain = {**SHORT, "expect": []}
    found = compare_runs([RUNNER.start(build_experiment(plain), "small", tmp_path), run(plain, tmp_path)])
    assert expectations_chart(found) == ""
    assert "Median iteration time" in render_comparison(found)


def test_the_command_shows_a_table_and_writes_a_page_or_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = folder / "small" / "testbeds.html"
    assert main(["compare", "small", "--testbeds", "--json", "--runs", str(folder)]) == 0
    record = json.loads(capsys.readouterr().out)
    assert [each["testbed"]["kind"] for each in record["runs"]] == ["fluid", "packets"]
    assert record["expectations"][0]["testbeds"]["fluid"]["verdict"] == "fail"
    assert not page.exists()
    assert main(["compare", "small", "--testbeds", "--runs", str(folder)]) == 0
    assert f"page    {page}" in capsys.readouterr().out
    link = re.findall(r'href="([^"#]+report\.html)"', page.read_text())[0]
    assert (page.parent / link).parent in {each.path for each in Run.all(folder)}
    elsewhere = folder / "mine.html"
    assert main(["compare", "small", "--testbeds", "--runs", str(folder), "--page", str(elsewhere)]) == 0
    link = re.findall(r'href="([^"#]+report\.html)"', elsewhere.read_text())[0]
    assert (folder / link).parent in {each.path for each in Run.all(folder)}


def test_one_testbed_is_too_few(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    summarize_run(RUNNER.start(build_experiment(SHORT), "small", tmp_path))
    assert main(["compare", "small", "--testbeds", "--runs", str(tmp_path)]) == 1
    assert "on these testbeds: fluid; expected two testbeds at least" in capsys.readouterr().err
    assert main(["compare", "small", "other", "--testbeds", "--runs", str(tmp_path)]) == 2
    assert main(["compare", "small", "--runs", str(tmp_path)]) == 2
    assert main(["compare", "small", "other", "--page", "x.html", "--runs", str(tmp_path)]) == 2
