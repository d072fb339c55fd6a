# SPDX-License-Identifier: Apache-2.0
"""What people see: progress, errors, exit codes."""

import io
import re
import subprocess

import pytest
from rich.console import Console

from roundabout.cli.main import HIDDEN, PANELS, build_app, main
from roundabout.cli.runs import clean
from roundabout.core.errors import RoundaboutError, UsageError
from roundabout.core.paths import ROOT
from roundabout.runner.progress_events import Follower, JobProgress, Progress, TimeLeft, TrialProgress
from roundabout.terminal import run_progress
from roundabout.terminal.execution import execute
from roundabout.testbeds import find_provider

pytestmark = pytest.mark.unit


def test_a_log_gets_plain_lines(work, tiny):
    work.provider.fault("s1", retransmitted=2)
    out = io.StringIO()
    work.notes = Follower(run_progress.PlainView(Console(file=out, width=200)))
    work.start(tiny(iterations=2))
    said = out.getvalue()
    assert "trial 1 of 1: fair, repetition 1; about" in said
    assert "again: 2 segments were sent again on a lossless fabric" in said
    assert "trial 1 of 1: fair, repetition 1, attempt 2" in said
    assert "  j1: 2 iterations, mean " in said
    assert "\x1b" not in said


def test_short_iterations_keep_their_digits():
    progress = Progress()
    progress.jobs = {"j1": JobProgress(1, 1, 0.0293, 0.0293)}
    console = Console(file=io.StringIO(), width=200)
    console.print(run_progress.ProgressScreen(progress))
    assert "last 0.0293 ms   mean 0.0293 ms" in console.file.getvalue()


def test_an_interrupted_run_names_the_command_that_finishes_it(capsys):
    def work(runner):
        runner.observer.progress.path = "runs/a b/1"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute(work, find_provider({"testbed": "fluid"}), as_json=False)
    assert capsys.readouterr().out == "interrupted; finish it with `roundabout resume 'runs/a b/1'`\n"


def test_a_step_that_interrupts_a_trial_is_named_alone():
    out = io.StringIO()
    follower = Follower(run_progress.PlainView(Console(file=out, width=200)))
    follower.progress.trial = TrialProgress("k1", "fair", {"variant": "fair"}, 1, None, 1)
    follower.step("undoing all of it")
    assert out.getvalue() == "undoing all of it\n"


def test_a_terminal_gets_a_line_a_job_that_changes(work, tiny, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    work.provider.fault("s0", iteration_ms=400)
    out = io.StringIO()
    console = Console(file=out, width=120, force_terminal=True)
    with run_progress.show_progress(console) as work.notes:
        work.start(tiny())
    said = out.getvalue()
    for expected in ("j1", "j2", "iteration   2 of 3", "mean", "link L1:", "ECN marks a second", "left"):
        assert expected in said
    assert 3 < said.count("iteration") < 60


def test_a_terminal_that_cannot_move_its_cursor_gets_plain_lines(work, tiny, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    console = Console(file=io.StringIO(), width=200, force_terminal=True)
    with run_progress.show_progress(console) as work.notes:
        work.start(tiny(iterations=2))
    assert "  j1: 2 iterations, mean " in console.file.getvalue()


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (RoundaboutError("it broke", "mend it"), 1, "error: it broke\n  mend it\n"),
        (UsageError("no such thing"), 2, "error: no such thing\n"),
        (KeyboardInterrupt(), 130, ""),
        (SystemExit(143), 143, ""),
    ],
)
def test_errors_are_one_message_and_an_exit_code(monkeypatch, capsys, error, status, said):
    assert run_command_that_raises(error, monkeypatch) == status
    assert capsys.readouterr().err == said


def test_a_bug_is_one_message_that_names_its_log(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert run_command_that_raises(ValueError("nobody thought of this"), monkeypatch) == 1
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert said.startswith("error: unexpected ValueError: nobody thought of this\n")
    (log,) = tmp_path.glob("roundabout-crash-*.log")
    assert str(log) in said
    assert "Traceback" in log.read_text()


def run_command_that_raises(error, monkeypatch):
    def command():
        raise error

    monkeypatch.setattr(clean, "command", command)
    return main(["clean"])


def test_bad_usage_exits_with_2(capsys):
    assert main(["run"]) == 2
    assert main(["no-such-command"]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_every_command_has_help(capsys):
    build_app()
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    listed = {words[1] for line in shown.splitlines() if len(words := line.split()) > 1 and words[0] == "│"}
    assert listed >= PANELS.keys()
    assert not listed & HIDDEN.keys()


def test_the_time_left_has_as_many_repeats_as_there_were():
    left = TimeLeft(40, trials=4)
    assert left.seconds == 40
    for again in (False, True, False):
        left.begin(10)
        left.end(again)
    assert left.seconds == pytest.approx(20 * (30 + 10) / (20 + 10))


def test_the_version_is_shown(capsys):
    assert main(["--version"]) == 0
    revision, build = (
        r"[0-9a-f]{12}( with uncommitted changes)?",
        r"checkout, programs [0-9a-f]{12}, Python [\d.]+ on \w+",
    )
    expected = rf"roundabout \d+\.\d+\.\d+\nrevision   {revision}\nbuild      {build}\n"
    assert re.fullmatch(expected, capsys.readouterr().out)


def test_a_link_to_the_wrapper_is_the_program(tmp_path):
    link = tmp_path / "roundabout"
    link.symlink_to(ROOT / "rb")
    said = subprocess.run([str(link), "--version"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert said.startswith("roundabout ")


@pytest.mark.parametrize(
    ("words", "place", "completed"),
    [
        ("roundabout val", "1", "validate"),
        ("roundabout run unfair-v", "2", "unfair-vgg19"),
        ("roundabout plan --on", "2", "--only"),
    ],
)
def test_bash_completes(words, place, completed, monkeypatch, capsys):
    monkeypatch.setenv("_ROUNDABOUT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", place)
    assert main([]) == 0
    assert capsys.readouterr().out.split() == [completed]
