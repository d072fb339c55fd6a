# SPDX-License-Identifier: Apache-2.0
"""The exact wording of ten messages, one of each kind; other tests check the type, the file and the field alone."""

from pathlib import Path

import pytest

from roundabout.cli.main import main
from tests.analysis.computed_run import TINY

pytestmark = pytest.mark.unit

MESSAGES: dict[str, tuple[dict[str, str], list[str], str]] = {
    "an unknown key": (
        {"a.yaml": TINY.replace("repetitions:", "repetition:")},
        ["validate", "a.yaml"],
        "error: a.yaml:13: repetition: found the unknown field 'repetition', expected one of schema, name, about, "
        "source, study, exclude, repetitions, seed, only, set, scale, dilation and 30 more\n"
        "  did you mean repetitions?",
    ),
    "a value of another type": (
        {"a.yaml": TINY.replace("iterations: 3", "iterations: many")},
        ["validate", "a.yaml"],
        "error: a.yaml:9: iterations: found 'many', expected a whole number",
    ),
    "a key twice": (
        {"a.yaml": TINY + "name: b\n"},
        ["validate", "a.yaml"],
        "error: a.yaml:14: name: found the key 'name' a second time (first in line 3), expected each key once",
    ),
    "a name that is not in the topology": (
        {"a.yaml": TINY.replace("s0, s2", "s0, s9")},
        ["validate", "a.yaml"],
        "error: a.yaml:7: jobs.j1.workers[1]: found 's9', expected a host of dumbbell-2x2 (s0, s1, s2, s3)",
    ),
    "an override that is out of range": (
        {"a.yaml": TINY},
        ["plan", "a.yaml", "--set", "iterations=-1"],
        "error: a.yaml: --set iterations: found -1, expected at least 1",
    ),
    "an argument that is no assignment": (
        {"a.yaml": TINY},
        ["plan", "a.yaml", "--set", "iterations"],
        "error: --set: found 'iterations', expected PATH=VALUE, like jobs.j1.transport.T_us=90",
    ),
    "a run that is not there": (
        {},
        ["status", "last"],
        "error: no run 'last' in runs (experiments with runs: none)\n"
        "  name a run's folder, its id, an experiment, or `last`",
    ),
    "a damaged run": (
        {"r/manifest.json": "{"},
        ["status", "r"],
        "error: {folder}/r/manifest.json is not valid JSON: Expecting property name enclosed in double quotes: "
        "line 1 column 2 (char 1)\n"
        "  restore the file, or run the experiment again",
    ),
    "a table with a bad cell": (
        {"c.csv": "at_ms,host,tx_bytes\n1,n1,many\n", "jobs.yaml": "j1: [n1]\n"},
        ["advise", "c.csv", "--jobs", "jobs.yaml", "--capacity", "50"],
        "error: c.csv: row 1, column tx_bytes: found 'many', expected a number",
    ),
    "an inventory that lacks a field": (
        {"inventory": "all: {}\n"},
        ["plan", "unfair-vgg19", "--inventory", "inventory"],
        "error: inventory:1: all.vars: found nothing, expected a value: the field is required",
    ),
}


@pytest.mark.parametrize("kind", MESSAGES)
def test_a_message_is_worded_exactly(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files, words, message = MESSAGES[kind]
    monkeypatch.chdir(tmp_path)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert main(words) in (1, 2)
    assert capsys.readouterr().err == message.replace("{folder}", str(tmp_path)) + "\n"
