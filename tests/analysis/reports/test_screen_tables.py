# SPDX-License-Identifier: Apache-2.0
"""What `run`, `report` and `compare` show on screen."""

import json

import pytest
from hypothesis import given, strategies as st
from rich.console import Console

from analysis.render.page import table_html
from analysis.render.screen import table_renderable
from analysis.render.tables import Cell, Column, Table, one_section
from analysis.reports.comparison import CompareError, compare, table as comparison_table
from analysis.reports.report import terminal_report as table
from analysis.reports.summary import summarize_run
from analysis.studies.interleaving.tables import time_table
from roundabout.cli.main import main

pytestmark = pytest.mark.unit


def shown(renderable, width=100):
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


def test_the_table_fits_80_columns_and_holds_what_counts(results):
    text = shown(table(results), width=80)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert "…" not in text
    for words in ("alone", "fair", "unfair", "363.8", "interleaved", "1.23 ± 0.08", "✓ pass", "emulated: lab"):
        assert words in text
    assert "ECN marks per iteration" in text
    assert "unattri-" in text


def test_a_cell_with_an_interval_keeps_its_note():
    # A mean that stands for a median must be marked as one, because the caption explains the mark.
    table = Table((Column("median"),), one_section([(Cell(223.8, (220.8, 239.2), note="mean"),)]))
    assert shown(table_renderable(table)).split()[-3:] == ["223.8", "220.8-239.2", "mean"]
    assert "220.8 to 239.2<br>mean" in table_html(table)


def test_times_of_less_than_a_millisecond_keep_their_digits(results):
    times = {"median_ms": 0.0293, "median_ci95_ms": (0.0285, 0.0301), "mean_ms": 0.0294}
    cells = tuple(cell.model_copy(update=times) for cell in results.cells)
    text = shown(table_renderable(time_table(results.model_copy(update={"cells": cells}))))
    assert "0.0293" in text
    assert "0.0285-0.0301" in text


def test_names_that_differ_at_their_ends_are_not_cut():
    rows = [[Cell(f"reduce-scatter-{hosts}-64mib"), Cell(1.5)] for hosts in (4, 16)]
    table = Table((Column(kind="names"), Column("median, milliseconds")), one_section(rows))
    names = "".join(line[:10].strip() for line in shown(table_renderable(table), width=32).splitlines()[3:])
    assert names == "reduce-scatter-4-64mibreduce-scatter-16-64mib"


def with_marks(results, marks):
    """The same with other marks in each cell."""
    cells = tuple(cell.model_copy(update={"marks_per_iteration": marks(cell)}) for cell in results.cells)
    return results.model_copy(update={"cells": cells})


def test_cells_that_differ_only_in_the_variant_stand_together(results):
    both = [
        cell.model_copy(update={"levels": {**cell.levels, "base": base}})
        for cell in results.cells
        for base in ("one", "other")
    ]
    found = time_table(results.model_copy(update={"cells": tuple(both)}))
    assert [section.title for section in found.sections] == ["base one", "", "", "base other", "", ""]
    assert [section.rows[0][0].value for section in found.sections] == ["alone", "fair", "unfair"] * 2
    assert all(section.title == "" for section in time_table(results).sections)


@given(st.lists(st.text("abcdefgh-", min_size=1, max_size=18), max_size=16, unique=True), st.integers(40, 120))
def test_a_divisible_table_shows_every_column_beside_the_names_of_its_rows(names, width):
    columns = (Column(kind="names"), *(Column(name, ".2f") for name in names))
    rows = ((Cell(model), *(Cell(number + 0.25) for number in range(len(names)))) for model in ("WideResNet101", "XLM"))
    text = shown(table_renderable(Table(columns, one_section(rows), divisible=True)), width)
    assert max(map(len, text.splitlines())) <= width
    lines = [line.split() for line in text.splitlines()]
    for model in ("WideResNet101", "XLM"):
        figures = [word for line in lines if line[:1] == [model] for word in line[1:]]
        assert figures == [f"{number + 0.25:.2f}" for number in range(len(names))]
    assert [word for line in lines for word in line if word in names] == names


def test_large_numbers_of_marks_fit_too(results):
    ends = {f"{name}_ci95": (876543.2, 987654.3) for name in ("median", "mean")}
    many = with_marks(results, lambda cell: cell.marks_per_iteration.model_copy(update={**ends, "bound": 123456}))
    text = shown(table(many), width=80)
    assert text.count("876543-987654") == 12
    assert max(map(len, text.splitlines())) <= 80


def test_without_counted_marks_there_is_no_table_of_marks(results):
    assert "ECN marks" not in shown(table(with_marks(results, lambda _: None)))


def test_without_intervals_it_says_so(make_run):
    assert "intervals not measured: fewer than 4 repetitions" in shown(table(summarize_run(make_run(repetitions=2))))


def test_invalid_trials_are_named(make_run):
    text = shown(table(summarize_run(make_run(repetitions=1, spoilt={("fair", 1)}))))
    assert "invalid: " in text
    assert "CPU busy 0.97" in text
    assert "- not measured" in text


def test_a_run_compared_with_itself_shows_no_difference(run):
    comparison = compare(run, run)
    assert len(comparison.cells) == 6
    assert all(cell.speedup == 1.0 for cell in comparison.cells)
    text = shown(comparison_table(comparison))
    assert text.count("no difference shown") == 6
    assert max(map(len, text.splitlines())) <= 100


def test_a_quicker_run_is_called_quicker(run, make_run):
    slower = make_run("slow", slowdown=1.05)
    comparison = compare(slower, run)
    faster = [cell for cell in comparison.cells if cell.variant == "alone"]
    assert all(cell.speedup == pytest.approx(1 + 0.05 * 150 / 293, abs=0.01) for cell in faster)
    assert all(cell.speedup_ci95[0] > 1 for cell in faster)
    assert "B is quicker" in shown(comparison_table(comparison))


def test_emulated_and_real_are_mixed_only_on_request(run, make_run):
    real = make_run("real", repetitions=1, emulated=False)
    with pytest.raises(CompareError, match=r"is emulated and .* is real") as caught:
        compare(run, real)
    assert "--mixed" in caught.value.hint
    assert "one of them was emulated" in shown(comparison_table(compare(run, real, mixed=True)))


def test_runs_without_a_common_cell_are_refused(make_run):
    shared = make_run("shared", repetitions=1, spoilt={("alone", 1)})
    alone = make_run("alone", repetitions=1, spoilt={("fair", 1), ("unfair", 1)})
    with pytest.raises(CompareError, match="no variant, levels and job in common"):
        compare(shared, alone)


def test_a_run_without_valid_trials_is_refused_by_its_name(run, make_run):
    nothing = make_run(repetitions=1, spoilt={(variant, 1) for variant in ("alone", "fair", "unfair")})
    with pytest.raises(CompareError, match=f"{nothing.id} has no valid trial"):
        compare(run, nothing)


def test_report_and_compare_print_and_store_the_summary(make_run, capsys):
    run = make_run(repetitions=1)
    folder = str(run.path.parents[1])
    assert main(["report", "last", "--runs", folder]) == 0
    assert str(run.path / "report.html") in capsys.readouterr().out.replace("\n", "")
    assert json.loads((run.path / "summary.json").read_text())["experiment"] == "unfair-vgg19"
    assert main(["report", run.id, "--runs", folder, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads((run.path / "summary.json").read_text())
    assert main(["compare", "last", str(run.path), "--runs", folder, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["cells"]) == 6
    assert main(["compare", "last", "nowhere", "--runs", folder]) == 1
    assert "error: no run 'nowhere'" in capsys.readouterr().err
