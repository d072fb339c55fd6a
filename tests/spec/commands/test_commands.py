# SPDX-License-Identifier: Apache-2.0
"""`roundabout list`, `validate`, `plan` and `schema` as a user meets them."""

import io
import json
import os
import re
import struct
from pathlib import Path

import pytest
from rich.table import Table

from roundabout.cli.main import main
from roundabout.core.paths import ROOT
from roundabout.spec import EXPERIMENTS
from roundabout.terminal.lines import format_duration, print_warning
from roundabout.terminal.screen import Screen

pytestmark = pytest.mark.unit


def test_list_shows_the_catalogue(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    assert main(["list"]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("unfair-vgg19"))
    assert "HotNets'22, Figures 1 and 2" in line
    assert line.split()[-1] == "30"


def test_list_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--json"]) == 0
    entries = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert (entries["unfair-vgg19"]["trials"], entries["unfair-vgg19"]["error"]) == (30, None)


def test_validate_checks_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate"]) == 0
    assert "nothing wrong" in capsys.readouterr().out


def test_validate_names_every_wrong_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = tmp_path / "one.yaml", tmp_path / "other.yaml"
    one.write_text("name: one\nabuot: x\n")
    other.write_text("- a list\n")
    assert main(["validate", str(one), "unfair-vgg19", str(other)]) == 2
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith(f"error: {one}:2: abuot: found the unknown field 'abuot', expected one of schema, name")
    assert said[1] == "  did you mean about?"
    assert said[2] == f"error: {other}: found a list, expected a mapping of fields to values"


def test_validate_checks_an_inventory(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(ROOT / "inventory.example")]) == 2
    said = capsys.readouterr().err
    assert "found an inventory, expected an experiment\n  `roundabout doctor FILE` checks it" in said


def test_validate_names_a_fault_once_for_all_jobs_and_variants(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mine = Path("mine.yaml")
    assert main(["new", "mine"]) == 0
    mine.write_text(mine.read_text().replace("{name: dcqcn, T_us: 125}", "{name: dcqcn, T: 125}"))
    capsys.readouterr()
    assert main(["validate", str(mine)]) == 2
    assert capsys.readouterr().err.count("transport.T: found the unknown field 'T'") == 1


def test_messages_are_wrapped_between_words_on_a_terminal_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    message = "found /a/path/that-is/longer-than-a-line/of-this/narrow-terminal.yaml beside some words"
    print_warning(message)
    assert capsys.readouterr().err == f"warning: {message}\n"
    monkeypatch.setattr("os.get_terminal_size", lambda _: os.terminal_size((40, 24)))
    monkeypatch.setattr("sys.stderr.fileno", lambda: 2)
    print_warning(message)
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["warning: found", message.split()[1], "beside some words"]


def test_plan_shows_every_trial_and_the_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "unfair-vgg19"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert len(out) == 1 + 30 + 1 + 2
    assert out[-3] == "feedback: a mark cuts a rate after 8.6 to 10.6 us over an empty network"
    assert out[-2].startswith("packets: 30 trials, about ")
    assert out[-1].startswith("lab (dilation 3, transport_dilation 16): 30 trials, about 5 min 30 s")
    assert main(["plan", "websearch-bert", "--testbed", "lab"]) == 0
    assert re.match(r"\d+ trials, about ", capsys.readouterr().out.splitlines()[-1])
    assert main(["plan", "unfair-vgg19", "--dilation", "17.4"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("lab (dilation 17.4): 30 trials")


def test_plan_of_one_trial(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "unfair-vgg19", "--only", "fair", "--only", "fig-1", "--repetitions", "1"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("lab (dilation 3, transport_dilation 16): 1 trial")


def test_plan_accepts_quick_but_not_quick_and_full(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "websearch-bert", "--quick"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("lab: 6 trials")
    assert main(["plan", "websearch-bert", "--quick", "--full"]) == 2
    assert "found --quick and --full, expected one of them" in capsys.readouterr().err


def test_plan_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "unfair-vgg19", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["where"] == {"testbed": "lab", "dilation": "3", "transport_dilation": "16"}
    assert [trial["repetition"] for trial in plan["trials"]] == sorted([1, 2, 3, 4, 5] * 6)
    assert {tuple(trial["jobs"]) for trial in plan["trials"] if trial["variant"] == "alone"} == {("j1",), ("j2",)}


@pytest.mark.parametrize("fields", [["transport_dilation=16"], ["dilation=20", "transport_dilation=16"]])
def test_a_transport_is_dilated_by_no_less_than_jobs(fields: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "calibrate-dcqcn", *(word for each in fields for word in ("--set", each))]) == 2
    assert "transport_dilation: found 16, expected a `dilation` beside it" in capsys.readouterr().err


def test_plan_names_dilations(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", "calibrate-dcqcn", "--testbed", "lab", "--set", "dilation=3", "--set", "transport_dilation=16"]
    assert main(words) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("lab (dilation 3, transport_dilation 16): ")
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["where"] == {"testbed": "lab", **APART}


def test_plan_for_an_inventory(capsys: pytest.CaptureFixture[str]) -> None:
    inventory = str(ROOT / "inventory.example")
    assert main(["plan", "websearch-bert", "--quick", "--inventory", inventory]) == 0
    assert main(["plan", "unfair-vgg19", "--inventory", inventory]) == 2
    assert f"{inventory}: found no tor0, expected a machine for each host" in capsys.readouterr().err


def test_plan_accepts_set_and_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "unfair-vgg19", "--set", "jobs.j1.transport.T_us=90", "--only", "unfair", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["changes"] == {"jobs.j1.transport.T_us": 90, "only": ["unfair"]}
    assert {trial["variant"] for trial in plan["trials"]} == {"unfair"}
    assert main(["plan", "unfair-vgg19", "--set", "seed"]) == 2
    assert "--set: found 'seed', expected PATH=VALUE" in capsys.readouterr().err


def test_an_unknown_name_is_one_message(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "unfair-vgg"]) == 2
    assert "did you mean unfair-vgg19 or unfair-table1?" in capsys.readouterr().err


def test_schema_writes_to_the_given_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "--folder", str(tmp_path)]) == 0
    assert json.loads((tmp_path / "profile.json").read_text())["title"] == "Profile"
    (tmp_path / "file").touch()
    assert main(["schema", "--folder", str(tmp_path / "file")]) == 1
    assert "error: cannot write to" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.4, "0 s"), (59.6, "1 min 0 s"), (241, "4 min 1 s"), (7500, "2 h 5 min")]
)
def test_durations_read_well(seconds: float, said: str) -> None:
    assert format_duration(seconds) == said


MARKUP = "[/ref] [red]x :warning: [bold"


def test_markup_in_an_experiments_text_is_shown_literally(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (EXPERIMENTS / "catalog/hotnets22/unfair-vgg19.yaml").read_text()
    path = tmp_path / "unfair-vgg19.yaml"
    path.write_text(re.sub(r"^about: .*$", f'about: "{MARKUP}"', text, flags=re.MULTILINE))
    monkeypatch.setattr("roundabout.cli.runs.run.execute_series", lambda *_: None)
    assert main(["run", str(path)]) == 0
    assert f"unfair-vgg19: {MARKUP}\n" in capsys.readouterr().out


def test_a_captures_name_is_shown_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x[" / "b].pcap"
    path.parent.mkdir()
    path.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 128, 1) + b"torn")
    assert main(["decode", str(path)]) == 0
    said = capsys.readouterr().out
    assert "x[/b].parquet: 0 packets" in said
    assert "warning" in said


@pytest.mark.parametrize("words", [["run", MARKUP], [f"--{MARKUP}"], [MARKUP], ["report", MARKUP]])
def test_a_mistake_on_the_command_line_is_shown_as_it_is(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) in (1, 2)
    assert "[red]x" in capsys.readouterr().err


def test_printed_text_is_not_read_as_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    grid = Table(MARKUP, title=MARKUP, caption=MARKUP)
    grid.add_row(MARKUP)
    Screen(file=out, width=200).print(MARKUP, grid)
    assert out.getvalue().count(MARKUP) == 5


def test_commands_print_on_our_screen_alone() -> None:
    sources = [*(ROOT / "roundabout").rglob("*.py"), *(ROOT / "analysis").rglob("*.py")]
    assert [path.name for path in sources if re.search(r"\bConsole\(", path.read_text())] == []


APART = {"dilation": "3", "transport_dilation": "16"}


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("mltcp-vgg19", {"dilation": "4"}),
        ("mltcp-vgg19 --dilation 2", {"dilation": "2"}),
        ("mltcp-vgg19 --scale 200", {"dilation": "4", "scale": "200"}),
        ("calibrate-dcqcn --testbed lab --set dilation=3 --set transport_dilation=16", APART),
        ("calibrate-dcqcn --dilation 2 --set dilation=4 --set transport_dilation=16", {"dilation": "2"}),
        ("unfair-vgg19 --testbed lab", APART),
        ("unfair-vgg19 --testbed lab --set dilation=null --set transport_dilation=null", {}),
        ("cluster-slice", {"scale": "1000"}),
        ("cluster-slice --scale 500", {"scale": "500"}),
        ("cluster-slice --testbed fluid", {}),
    ],
    ids=str,
)
def test_an_experiment_may_make_a_lab_divide_rates_and_stretch_time(
    words: str, found: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    requested = []
    monkeypatch.setattr("roundabout.cli.runs.run.execute_series", lambda providers, *_: requested.append(providers[-1]))
    assert main(["run", *words.split()]) == 0
    assert [dict(each.where) for each in requested] == [{"testbed": "fluid" if "fluid" in words else "lab", **found}]
