# SPDX-License-Identifier: Apache-2.0
"""Exit status of commands that measure: docs/reference/exit-status.md."""

import re
from pathlib import Path

import pytest

from analysis.reports.comparison import CompareError, compare
from roundabout.cli.main import main
from roundabout.cli.runs import resume, run
from roundabout.runner import run as runner
from roundabout.store import Run
from roundabout.terminal import execution
from roundabout.terminal.testbed_series import TestbedSeries as Series
from roundabout.terminal.validity import most_frequent_reason

pytestmark = pytest.mark.unit

VARIANTS = "alone: {one_job_at_a_time: true, iterations: 2}, fair: {}"


@pytest.fixture(autouse=True)
def on_the_fake_testbed(work, monkeypatch):
    monkeypatch.setattr(run, "choose_series", lambda *_, **__: Series((work.provider,)))
    monkeypatch.setattr(resume, "find_provider", lambda *_, **__: work.provider)
    monkeypatch.setattr(execution, "Runner", lambda *_, **__: work.runner)
    monkeypatch.setattr(execution, "undo_when_ended", lambda: None)
    monkeypatch.setattr("analysis.reports.report.write_report", lambda run: run.path / "report.html")
    monkeypatch.setattr(runner, "MAX_REPEATS", 0)


def spoil(work, host="s1"):
    work.provider.fault(host, retransmitted=4)


def test_a_run_with_valid_trials_in_every_cell_ends_with_0(work, tiny, capsys):
    assert main(["run", str(work.write(tiny())), "--runs", str(work.runs)]) == 0
    assert "warning" not in capsys.readouterr().err


def test_a_run_without_valid_trials_exits_1_with_the_commonest_reason(work, tiny, capsys):
    spoil(work)
    path = work.write(tiny())
    assert main(["run", str(path), "--runs", str(work.runs)]) == 1
    said = capsys.readouterr()
    expected = "error: none of 1 trials is valid; the most frequent reason (1 of 1): 4 segments were sent again"
    assert said.err.count("error: ") == 1
    assert expected in said.err
    assert f"roundabout status {Run.open('last', work.runs).path}" in said.err
    assert "report  " in said.out
    # Nothing is left to do, and nothing was measured: finishing the run ends like the run.
    assert main(["resume", "last", "--runs", str(work.runs)]) == 1
    assert expected in capsys.readouterr().err


def test_a_cell_without_a_valid_trial_is_the_last_line_and_the_status_is_0(work, tiny, capsys):
    spoil(work)
    assert main(["run", str(work.write(tiny(variants=VARIANTS))), "--runs", str(work.runs)]) == 0
    *_, last = capsys.readouterr().err.splitlines()
    assert re.match(r"warning: no valid trial in 1 of 2 cells: (alone|fair); each trial's reason: roundabout", last)


def test_a_report_on_a_run_without_a_valid_trial_is_made_and_warns(work, tiny, capsys):
    spoil(work)
    made = work.start(tiny())
    assert main(["report", "--json", str(made.path)]) == 0
    assert "warning: none of 1 trials is valid" in capsys.readouterr().err


def test_a_run_without_a_valid_trial_is_not_compared(work, tiny):
    spoil(work)
    made = work.start(tiny())
    with pytest.raises(CompareError, match="has no valid trial"):
        compare(made, made)


def test_reasons_that_differ_in_figures_alone_are_counted_as_one():
    reasons = ["woke up 7.5 ms late", "woke up 8 ms late; lost", "lost", "woke up 9.25 ms late"]
    trials = [{"valid": False, "reason": each} for each in reasons]
    assert most_frequent_reason(trials) == ("woke up 7.5 ms late", 3)
    assert most_frequent_reason([{"valid": False, "reason": ""}]) == ("no reason is recorded", 1)


def test_the_document_names_the_exit_status_of_every_error():
    root = Path(__file__).parents[3]
    text = (root / "docs/reference/exit-status.md").read_text()
    documented = {int(number) for number in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}
    sources = (path.read_text() for folder in ("roundabout", "analysis") for path in (root / folder).rglob("*.py"))
    used = {int(number) for source in sources for number in re.findall(r"^ +exit_code = (\d+)$", source, re.MULTILINE)}
    assert used == {1, 2, 3, 4}
    assert used <= documented
