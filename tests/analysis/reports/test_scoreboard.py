# SPDX-License-Identifier: Apache-2.0
"""The scoreboard: no row is missing, measured or not, and a row has the newest valid run's figures."""

import json
from datetime import UTC, datetime
from functools import cache
from io import StringIO
from types import SimpleNamespace
from unittest import mock

import pytest
from rich.console import Console

from analysis import papers
from analysis.papers.causes import CAUSES
from analysis.reading.cells import cells_of
from analysis.reports import scoreboard
from analysis.reports.publishing.publication import FACTS, RESULTS, SUMMARY
from analysis.reports.scoreboard import format_age, read_scoreboard, scoreboard_record
from analysis.reports.scoreboard_page import render_scoreboard
from analysis.reports.scoreboard_pictures import draw_row
from analysis.reports.scoreboard_table import ScoreboardTable, describe_outcome, describe_testbed, summarize
from roundabout.cli.main import main
from roundabout.spec import EXPERIMENTS

pytestmark = pytest.mark.unit

NOW = datetime(2026, 11, 23, 9, 30, 12, tzinfo=UTC)


@pytest.fixture(scope="module", autouse=True)
def catalog_that_is_read_once():
    """Reading the catalog takes longer than all else here."""
    with mock.patch.object(scoreboard, "load_catalog", cache(scoreboard.load_catalog)):
        yield


@pytest.fixture(scope="module")
def lines(run):
    """Of a made-up run of unfair-vgg19, two days old."""
    return read_scoreboard(run.path.parents[1], pytest.fail, now=NOW)


def line(lines, name):
    (found,) = [each for each in lines if each.id == name]
    return found


def test_without_a_run_every_row_says_so(tmp_path):
    lines = read_scoreboard(tmp_path, pytest.fail)
    assert len(lines) == 37
    assert all(each.verdict == "not measured" and each.missing for each in lines)
    first, last = line(lines, "B Fig 4.1"), line(lines, "C Fig 3-10, 3-11, Table 3.11")
    assert first.missing == (
        "no run of traffic-patterns on fluid or packets or lab is published yet "
        "(roundabout run traffic-patterns --testbed fluid)"
    )
    assert last.missing == (
        "no run of iteration-flows on lab is published yet (roundabout run iteration-flows --testbed lab)"
    )
    assert "cross-traffic-all" in line(lines, "C Fig 3-10, 3-11, Table 3.11").others
    assert "0 of 37 results pass, 0 fail" in summarize(lines)
    assert "37 not measured" in summarize(lines)


@pytest.mark.parametrize(
    ("computed", "said"),
    [
        ([True, True], "Computed figures decide 2 of 2 rows."),
        ([True, False], "Computed figures decide 1 of 2 rows, and measured ones the others."),
    ],
)
def test_measured_figures_are_mentioned_where_they_decide_rows(computed, said):
    rows = [
        SimpleNamespace(verdict="pass", lacks_intervals=0, computed=each, deciding=[1], bases=()) for each in computed
    ]
    assert said in summarize(rows).splitlines()


def test_results_of_others_are_a_group_of_their_own(tmp_path, capsys):
    assert main(["scoreboard", "--group", "others", "--json", "--runs", str(tmp_path), "--results", str(tmp_path)]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert {each["id"] for each in rows} == {row.id for _, row in papers.rows("others")}
    figure_6 = next(each for each in rows if each["id"] == "MonkeyTree Fig 6")
    assert "MonkeyTreeArtifact" in figure_6["source"]
    assert figure_6["missing"].startswith("no run of monkeytree-load on fluid ")


def test_others_decide_nothing_that_reproduce_runs():
    assert "monkeytree-load" not in dict(papers.deciding_runs())


def test_a_row_has_the_newest_valid_runs_figures(lines, run):
    first = line(lines, "A Fig 1b, 1c, 1d")
    (showing,) = [each for each in first.showings if each.measured]
    assert (showing.experiment, showing.run, showing.nature) == ("unfair-vgg19", run.id, "emulated")
    assert format_age(showing.age_s) == "2 days"
    faster = showing.measured[0]
    assert (faster.paper, faster.verdict, faster.basis) == (1.23, "pass", "fitted")
    assert first.bases == ["fitted", "by construction"]
    assert len(cells_of(run)) == 3


def test_a_run_without_a_valid_trial_does_not_count(make_run, tmp_path):
    spoilt = {(variant, 1) for variant in ("alone", "fair", "unfair")}
    run = make_run(repetitions=1, spoilt=spoilt)
    found = read_scoreboard(run.path.parents[1], pytest.fail, root=tmp_path / "no catalog")
    assert line(found, "A Fig 1b, 1c, 1d").measured == []


@pytest.mark.parametrize(("changes", "counts"), [({"iterations": 5}, False), ({"repetitions": 4}, True)])
def test_a_run_that_was_changed_for_once_does_not_count(make_run, tmp_path, changes, counts):
    run = make_run(repetitions=1)
    experiment = {**run.manifest["experiment"], "set": changes}
    run.write_manifest({**run.manifest, "experiment": experiment})
    found = read_scoreboard(run.path.parents[1], pytest.fail, root=tmp_path / "no catalogue")
    assert any(each.measured for each in found) == counts


def test_the_scoreboard_has_a_json_form(lines):
    record = json.loads(json.dumps(scoreboard_record(lines), allow_nan=False))
    assert (len(record["rows"]), record["of"], record["measured"]) == (37, 37, 2)
    assert record["rows"][0]["verdict"] in ("pass", "fail")
    assert record["rows"][6]["missing"].startswith("no run of traffic-patterns on ")


def test_the_page_has_every_row_with_a_picture_where_there_are_figures(lines):
    text = render_scoreboard(lines)
    assert all(f'id="{each.id}"' in text for each in lines)
    without = [each.id for each in lines if draw_row(each) is None]
    assert without == [
        "B Fig 4.7, 4.8", "B Fig 4.16", "B Fig 4.17", "C Fig 3-5", "C Fig 3-8", "C Fig A-1", "C Fig B-1",
    ]  # fmt: skip
    assert text.count("data:image/svg") == 1 + 37 - len(without)


def test_the_command_shows_all_rows_and_makes_the_page(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["scoreboard", "--runs", str(tmp_path), "--results", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines()[:-1])) <= 80
    assert "MLTCP" in shown
    assert (tmp_path / "scoreboard.html").exists()


def test_quantities_are_listed(capsys):
    assert main(["scoreboard", "--quantities"]) == 0
    assert "speedup of median iteration time" in capsys.readouterr().out


def published(results, run, name, kind, **fields):
    """Publish made-up results as those of another run and testbed."""
    folder = results_folder(run) / "unfair-vgg19" / kind
    folder.mkdir(parents=True)
    facts = {
        "run": name, "experiment": "unfair-vgg19", "testbed": kind, "nature": "computed", "fidelity": "computed",
        "command": "roundabout run", "length": None, "version": "1", "revision": "0", "machine": {}, "trials": {},
        "disturbed": False, "wall_s": 1.0, "figures": [],
    }  # fmt: skip
    (folder / FACTS).write_text(json.dumps({"schema": 1, **facts, **fields}))
    (folder / SUMMARY).write_text(json.dumps({**results.record(), "run": name}))
    return folder


def results_folder(folder):
    return folder / "results"


def read_beside(run, folder):
    """Read the scoreboard of a run and of what is published in a folder, without the catalog, which takes seconds."""
    runs, results = run.path.parents[1], results_folder(folder)
    return read_scoreboard(runs, pytest.fail, root=folder / "no catalog", now=NOW, results=results)


def test_testbeds_stand_side_by_side_and_a_publication_gives_way_to_a_newer_run(run, results, tmp_path):
    older, newer = "20261120T093012Z-7f3a", "20261122T093012Z-7f3a"
    published(results, tmp_path, newer, "packets")
    published(results, tmp_path, older, "lab", nature="emulated")
    lines = read_beside(run, tmp_path)
    first = line(lines, "A Fig 1b, 1c, 1d")
    shown = {each.testbed: (each.run, each.is_published) for each in first.showings}
    assert shown == {"lab": (run.id, False), "packets": (newer, True)}
    assert [each.testbed for each in first.deciding] == ["packets"]
    assert first.testbeds.keys() == {"lab", "packets"}
    assert all(each.testbeds.keys() == {"lab", "packets"} for each in first.compared)
    published_lab = tmp_path / "again"
    published(results, published_lab, newer, "lab", nature="emulated")
    assert line(read_beside(run, published_lab), "A Fig 1b, 1c, 1d").deciding[0].run == newer


def test_a_testbed_that_cannot_show_a_row_neither_passes_nor_fails(run, results, tmp_path):
    published(results, tmp_path, "20261122T093012Z-7f3a", "fluid")
    first = line(read_beside(run, tmp_path), "A Fig 1b, 1c, 1d")
    assert first.testbeds.keys() == {"lab"}
    assert first.not_shown == {"fluid": "the flow level has no transports, timers or queues"}
    assert [each.testbed for each in first.deciding] == ["lab"]
    assert describe_testbed(first, "fluid") == "not shown"
    assert describe_testbed(first, "lab").startswith("✓")
    assert describe_testbed(first, "rack") == ""


def test_a_row_names_the_testbeds_without_a_run_if_the_run_cannot_show_it(results, tmp_path):
    published(results, tmp_path, "20261122T093012Z-7f3a", "fluid")
    lines = read_scoreboard(
        tmp_path, pytest.fail, root=tmp_path / "no catalog", now=NOW, results=results_folder(tmp_path)
    )
    assert describe_outcome(line(lines, "A Fig 1b, 1c, 1d")) == (
        "the flow level has no transports, timers or queues; no run of unfair-vgg19 on packets or lab is published yet "
        "(roundabout run unfair-vgg19 --testbed packets)."
    )


def test_each_row_is_shown_by_experiments_of_the_catalog_that_have_its_figures():
    shown = scoreboard.rows_by_experiment(EXPERIMENTS)
    wrong = [(row.id, name) for _, row in papers.rows() for name in row.shown_by if row.id not in shown.get(name, ())]
    assert wrong == []


@pytest.mark.parametrize(("repetitions", "lacks"), [(1, True), (4, False)])
def test_too_few_repetitions_are_distinguished_from_wide_intervals(make_run, repetitions, lacks, tmp_path):
    run = make_run(repetitions=repetitions)
    first = line(read_scoreboard(run.path.parents[1], pytest.fail, root=tmp_path / "no catalog"), "A Fig 1b, 1c, 1d")
    assert first.lacks_intervals == lacks
    assert ("too few repetitions" in describe_outcome(first)) == lacks


def test_the_screen_has_a_column_for_the_paper_and_each_testbed(run, results, tmp_path):
    published(results, tmp_path, "20261122T093012Z-7f3a", "packets")
    lines = read_beside(run, tmp_path)
    for width in (80, 120):
        console = Console(width=width, file=StringIO())
        console.print(ScoreboardTable(lines))
        shown = console.file.getvalue().splitlines()
        assert shown[1].split() == ["paper", "packets", "lab", "flow", "level"]
        assert max(map(len, shown)) <= width
        assert any(text.count("✓ 1.2") == 2 and " 1.23 " in text for text in shown)
    assert "unfair-vgg19: packets published, lab 2 days old" in " ".join(console.file.getvalue().split())


def test_every_failed_row_of_the_projects_publications_has_a_cause(tmp_path):
    root, groups = tmp_path / "no catalog", tuple(papers.GROUPS)
    lines = read_scoreboard(tmp_path, pytest.fail, root=root, results=RESULTS, groups=groups)
    assert [each.id for each in lines if each.verdict == "fail" and not each.cause] == []
    assert CAUSES.keys() <= {each.id for each in lines}
