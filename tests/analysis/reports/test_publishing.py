# SPDX-License-Identifier: Apache-2.0
"""Publishing: what is written below results/, and which runs are refused."""

import json
import subprocess
from types import SimpleNamespace

import numpy as np
import pytest

from analysis.render.page import figure_html
from analysis.render.style import new_figure
from analysis.reports.publishing import publisher
from analysis.reports.publishing.history import has_revision
from analysis.reports.publishing.publication import (
    FACTS,
    RESULTS,
    SUMMARY,
    Publication,
    publications,
    published_content,
    read_publications,
)
from analysis.reports.publishing.publisher import (
    PublishError,
    choose_figures,
    command_of,
    publish_run,
    shown_figures,
)
from roundabout.core.paths import ROOT
from roundabout.store import Run, StoreError

pytestmark = pytest.mark.unit

CODE = {"version": "1.2.3", "source": "checkout", "revision": "0123456789abcdef" * 2, "dirty": False}
DRAWN = [("bandwidth over time", "<svg/>"), ("too large", "x" * 100_000), ("iterations", "<svg/>")]


@pytest.fixture(autouse=True)
def checkout(monkeypatch, tmp_path):
    """A folder without a history, where the code under test is said to be: the revision of made-up runs is made up."""
    monkeypatch.setattr(publisher, "ROOT", tmp_path)


@pytest.fixture
def complete(short_run, results, monkeypatch):
    """A complete run of one repetition, whose summary is known, and whose report has figures 1 and 3 that are small."""
    monkeypatch.setattr(publisher, "draw_figures", lambda _: DRAWN)
    monkeypatch.setattr(publisher, "summarize_run", lambda _: results)
    return altered(short_run)


@pytest.fixture
def history(tmp_path):
    """A git repository with the commits `first` and `head` on its branch, and `abandoned` on none."""
    folder = tmp_path / "repository"
    folder.mkdir()

    def git(*words):
        user = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
        return subprocess.run(["git", *user, *words], cwd=folder, check=True, capture_output=True, text=True).stdout

    def commit():
        git("commit", "--quiet", "--allow-empty", "--message", "change")
        return git("rev-parse", "HEAD").strip()

    git("init", "--quiet")
    first, head = commit(), commit()
    abandoned = git("commit-tree", "HEAD^{tree}", "-p", first, "-m", "another change").strip()
    return SimpleNamespace(folder=folder, first=first, head=head, abandoned=abandoned)


def altered(run, code=CODE, **fields):
    """Return the run with fields of its experiment changed, and with this code in its session."""
    manifest = run.manifest
    session = {**manifest["sessions"][0], "code": code}
    plan = [{"key": key} for key in sorted(run.committed())]
    experiment = {**manifest["experiment"], **fields}
    run.write_manifest({**manifest, "plan": plan, "sessions": [session], "experiment": experiment})
    return Run(run.path)


def test_a_publication_has_the_summary_the_figures_and_the_facts(complete, results, tmp_path):
    published = publish_run(complete, tmp_path / "results")
    assert published.folder == tmp_path / "results" / "unfair-vgg19" / "lab"
    assert sorted(path.name for path in published.folder.iterdir()) == [
        "figure-1.svg", FACTS, SUMMARY,
    ]  # fmt: skip
    facts = Publication(published.folder).facts
    assert (facts.run, facts.experiment, facts.testbed, facts.nature) == (
        complete.id, "unfair-vgg19", "lab", "emulated",
    )  # fmt: skip
    assert (facts.revision, facts.command) == (CODE["revision"], "roundabout run unfair-vgg19 --testbed lab")
    assert [each.about for each in facts.figures] == ["bandwidth over time"]
    assert Publication(published.folder).verdicts == results.expectations
    assert json.loads((published.folder / SUMMARY).read_text()) == published_content(results.record())


def test_a_figure_that_a_page_shows_is_published_too(complete, tmp_path):
    page = tmp_path / "docs" / "results" / "page.md"
    page.parent.mkdir(parents=True)
    page.write_text("![Iterations](../../results/unfair-vgg19/lab/figure-3.svg)")
    published = publish_run(complete, tmp_path / "results")
    assert [each.file for each in published.facts.figures] == ["figure-1.svg", "figure-3.svg"]
    assert sorted(path.name for path in published.folder.glob("*.svg")) == ["figure-1.svg", "figure-3.svg"]
    page.unlink()
    publish_run(complete, tmp_path / "results")
    assert [path.name for path in published.folder.glob("*.svg")] == ["figure-1.svg"]


def test_figures_have_six_significant_digits_but_for_those_of_verdicts():
    cells = [{"mean_ms": 1234.56789, "count": 1234567, "job": "1.23456789", "p99_ms": None, "share": 0.000123456789}]
    assert published_content({"cells": cells, "lines": cells, "expectations": [{"measured": 192.349999}]}) == {
        "cells": [{**cells[0], "mean_ms": 1234.57, "share": 0.000123457}],
        "expectations": [{"measured": 192.349999}],
    }


@pytest.mark.parametrize(
    ("code", "fields", "message"),
    [
        (CODE, {"set": {"iterations": 5}}, "was altered by --set iterations=5"),
        (CODE, {"only": ["fair"]}, "was altered by --only fair"),
        ({**CODE, "dirty": True}, {}, "with uncommitted changes of the code"),
        ({**CODE, "revision": None}, {}, "without a known revision of the code"),
    ],
)
def test_altered_runs_and_runs_of_uncommitted_code_are_refused(complete, tmp_path, code, fields, message):
    with pytest.raises(PublishError, match=message):
        publish_run(altered(complete, code, **fields), tmp_path / "results")
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("commit", ["first", "head"])
def test_a_run_of_code_in_the_history_is_published(complete, history, monkeypatch, tmp_path, commit):
    monkeypatch.setattr(publisher, "ROOT", history.folder)
    revision = getattr(history, commit)
    published = publish_run(altered(complete, {**CODE, "revision": revision}), tmp_path / "results")
    assert published.facts.revision == revision


@pytest.mark.parametrize("commit", ["abandoned", "unknown"])
def test_a_run_of_code_outside_the_history_is_refused(complete, history, monkeypatch, tmp_path, commit):
    monkeypatch.setattr(publisher, "ROOT", history.folder)
    revision = getattr(history, commit, CODE["revision"])
    with pytest.raises(PublishError, match=f"revision {revision[:12]}, which is not in the history of HEAD") as error:
        publish_run(altered(complete, {**CODE, "revision": revision}), tmp_path / "results")
    assert "run the experiment again on a commit of this branch" in error.value.hint
    assert not (tmp_path / "results").exists()


def test_copies_without_a_whole_history_show_only_what_they_have(history, tmp_path):
    shallow = tmp_path / "shallow"
    subprocess.run(["git", "clone", "--quiet", "--depth=1", history.folder.as_uri(), shallow], check=True)
    assert has_revision(history.head, shallow) is True
    assert has_revision(history.first, shallow) is None
    assert has_revision(history.head, tmp_path) is None


def test_a_run_with_another_number_of_repetitions_is_published_with_its_command(complete, tmp_path):
    published = publish_run(altered(complete, set={"repetitions": 1}), tmp_path / "results")
    assert published.facts.command == "roundabout run unfair-vgg19 --testbed lab --repetitions 1"


@pytest.mark.parametrize(
    ("of_experiment", "where", "options"),
    [
        ({}, {"scale": "50"}, " --scale 50"),
        ({}, {"dilation": "1"}, " --dilation 1"),
        ({"dilation": 4.0}, {"dilation": "4"}, ""),
        ({"dilation": 4.0}, {"dilation": "8"}, " --dilation 8"),
        ({"dilation": 4.0, "transport_dilation": 16.0}, {"dilation": "4", "transport_dilation": "16"}, ""),
        ({"dilation": 4.0, "transport_dilation": 16.0}, {"dilation": "4"}, " --dilation 4"),
    ],
)
def test_a_command_has_the_factors_of_a_lab_that_were_given(complete, of_experiment, where, options):
    fields = {"dilation": None, "transport_dilation": None, **of_experiment}
    manifest = {**complete.manifest, "experiment": {**complete.manifest["experiment"], **fields}, "where": where}
    assert command_of(manifest) == f"roundabout run unfair-vgg19 --testbed lab{options}"


def test_the_command_of_a_run_until_decided_has_its_first_repetitions_and_its_budget(complete):
    experiment = {**complete.manifest["experiment"], "set": {"repetitions": 16}}
    looks = {"repetitions": [4, 8, 16, 32], "budget_s": 5400.0, "spent_s": 60.0}
    manifest = {**complete.manifest, "experiment": experiment, "looks": looks}
    command = "roundabout run unfair-vgg19 --testbed lab --repetitions 4 --until-decided 90"
    assert command_of(manifest) == command


def test_an_incomplete_run_is_refused(complete, tmp_path):
    plan = [*complete.manifest["plan"], {"key": "missing"}]
    complete.write_manifest({**complete.manifest, "plan": plan})
    with pytest.raises(PublishError, match=f"is incomplete: {len(plan) - 1} of {len(plan)} trials are committed"):
        publish_run(complete, tmp_path / "results")


def test_a_run_with_a_cell_without_a_valid_trial_is_refused(complete, tmp_path):
    path = next(path for path in complete.path.glob("trials/*/trial.json") if '"fair"' in path.read_text())
    path.write_text(json.dumps({**json.loads(path.read_text()), "valid": False, "reason": "CPU busy"}))
    with pytest.raises(PublishError, match="is invalid: 1 of 4 cells have no valid trial"):
        publish_run(complete, tmp_path / "results")


def test_a_run_without_one_of_its_files_is_refused(short_run, tmp_path):
    next(short_run.path.glob("trials/*/iterations.parquet")).unlink()
    with pytest.raises(StoreError, match=r"iterations\.parquet"):
        publish_run(altered(short_run), tmp_path / "results")


def test_an_older_run_replaces_a_newer_one_only_by_force(complete, tmp_path):
    folder = publish_run(complete, tmp_path / "results").folder
    facts = json.loads((folder / FACTS).read_text())
    (folder / FACTS).write_text(json.dumps({**facts, "run": "20991121T093012Z-7f3a"}))
    with pytest.raises(PublishError, match="which is newer than"):
        publish_run(complete, tmp_path / "results")
    assert publish_run(complete, tmp_path / "results", force=True).facts.run == complete.id


def test_a_damaged_publication_is_left_out_with_its_error(complete, tmp_path):
    folder = publish_run(complete, tmp_path / "results").folder
    summary = json.loads((folder / SUMMARY).read_text())
    (folder / SUMMARY).write_text(json.dumps({**summary, "run": "another"}))
    errors = []
    assert list(read_publications(tmp_path / "results", errors.append)) == []
    assert "of run another" in errors[0].message


def test_published_figures_are_shrunk(monkeypatch):
    def draw(_):
        figure, (panel,) = new_figure(1, 1, 3)
        panel.plot(np.linspace(0, 1, 5000), np.sin(np.linspace(0, 300, 5000)))
        figure_html(figure, "", "a curve")

    monkeypatch.setattr(publisher, "execute_report", draw)
    ((about, svg),) = publisher.draw_figures(None)
    assert about == "a curve"
    assert len(svg) < 30_000


def test_the_first_small_figure_and_those_that_pages_show_are_chosen():
    def chosen(drawn, *shown):
        return [(figure.file, figure.about) for figure, _ in choose_figures(drawn, shown)]

    assert chosen(DRAWN) == [("figure-1.svg", "bandwidth over time")]
    assert chosen(DRAWN[1:]) == [("figure-2.svg", "iterations")]
    assert chosen(DRAWN, "figure-2.svg", "figure-3.svg") == [
        ("figure-1.svg", "bandwidth over time"), ("figure-3.svg", "iterations"),
    ]  # fmt: skip
    assert chosen([]) == []


def test_shown_figures_are_those_of_the_experiment_and_the_testbed(tmp_path):
    links = ("unfair-vgg19/lab/figure-2", "unfair-vgg19/fluid/figure-3", "vgg19/lab/figure-4")
    (tmp_path / "page.md").write_text("\n".join(f"![a figure](../../results/{link}.svg)" for link in links))
    assert shown_figures("unfair-vgg19", "lab", tmp_path) == {"figure-2.svg"}
    assert shown_figures("vgg19", "lab", tmp_path) == {"figure-4.svg"}


def test_all_publications_of_the_project_can_be_read():
    for each in publications():
        recoveries = json.loads((each.folder / SUMMARY).read_text()).get("recoveries")
        assert each.verdicts or each.facts.figures or recoveries
        assert each.folder == RESULTS / each.facts.experiment / each.facts.testbed
        assert all((each.folder / figure.file).is_file() for figure in each.facts.figures)
        assert not any(b"/work" in path.read_bytes() or b"/root" in path.read_bytes() for path in each.folder.iterdir())
    assert sum(path.stat().st_size for path in RESULTS.rglob("*") if path.is_file()) < 5_000_000


def test_all_figures_of_the_project_are_first_ones_or_shown_by_a_page():
    for each in publications():
        files = [figure.file for figure in each.facts.figures]
        assert {path.name for path in each.folder.iterdir()} == {FACTS, SUMMARY, *files}
        assert {*files[1:]} <= shown_figures(each.facts.experiment, each.facts.testbed, ROOT / "docs")


def test_all_publications_are_of_code_in_the_history():
    known = {str(each.folder.relative_to(RESULTS)): has_revision(each.facts.revision, ROOT) for each in publications()}
    if None in known.values():
        pytest.skip("this copy of the project has no whole history: `git fetch --unshallow` brings it")
    assert [folder for folder, found in known.items() if not found] == []
