# SPDX-License-Identifier: Apache-2.0
"""What a new user meets: hints at the right names, all faults of a file at once, and estimates with the report."""

import re
from pathlib import Path
from typing import Any

import pytest

from roundabout import build_experiment
from roundabout.cli.main import main
from roundabout.cli.tools import doctor
from roundabout.core.errors import UsageError
from roundabout.runner.run import make_run_plan
from roundabout.runner.testbed import Check, TestbedProvider
from roundabout.spec import SpecError, load_experiment
from roundabout.testbeds import find_provider
from roundabout.testbeds.fluid.provider import FluidProvider
from roundabout.testbeds.lab.provider import LabProvider
from roundabout.testbeds.packets.provider import PacketsProvider

pytestmark = pytest.mark.unit

HERE = Path(__file__).parent
TWO: dict[str, Any] = {
    "name": "two",
    "about": "x",
    "topology": "dumbbell-2x2",
    "profile": "vgg19-fig1",
    "iterations": 2,
    "queue": "auto",
    "transport": {"name": "mltcp_reno"},
    "jobs": {"j1": {"workers": ["s0", "s2"]}, "j2": {"workers": ["s1", "s3"]}},
}


@pytest.mark.parametrize("name", ["t.YAML", "t.yml", "t.YML", "./t"])
def test_a_suffix_in_capitals_is_a_path(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (HERE / "suffix-in-capitals" / "t.YAML").read_text()
    Path(name).write_text(text)
    with pytest.raises(SpecError, match=r"t(\.\w+)?:1: name: found nothing, expected a value"):
        load_experiment(name)


def test_a_file_without_a_suffix_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t").write_text("schema: 1\n")
    assert main(["validate", "t"]) == 2
    assert "the file t is in this folder: call it ./t" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["--set", "transport.T=80"], "did you mean T_us?"),
        (["--set", "transport.R_AI=80"], "did you mean R_AI_mbps?"),
        (["--set", "T_us=80"], "did you mean transport.T_us?"),
        (["--set", "ecn=false"], "did you mean tcp.ecn?"),
        (["--set", "iteration=2"], "did you mean iterations"),
        (
            ["--set", "transport.name=mltcp"],
            "did you mean mltcp_cubic or mltcp_dcqcn or mltcp_dctcp or mltcp_reno or mltcp_swift?",
        ),
        (["--testbed", "packet"], "did you mean packets"),
        (["--testbed", "fluit"], "did you mean fluid?"),
    ],
)
def test_a_hint_names_what_is_meant(words: list[str], hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "unfair-vgg19", *words]) == 2
    said = capsys.readouterr().err.splitlines()
    assert said[-1].strip().startswith(hint)
    assert said[0].count(",") < 20  # the hint does not stand behind all fields


def test_validate_prints_every_fault_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "many.yaml"
    path.write_text(
        "schema: 1\nname: many\nabout: x\ntopology: mine\niterations: 3\n"
        "jobs: {j1: {workers: [a, b], profile: p}}\ntransport: {name: dcqcn, T_us: 125}\n"
        "profiles:\n  p: {model: m, phases: [{name: a, compute_ms: 5}, {name: s, bytes: 10, alone_ms: 4}]}\n"
        "topologies:\n  mine: {about: x, line_rate_gbps: 50, payload_rate_gbps: 43, queue: lossless, hosts: [a, b],\n"
        "         switches: [s], links: [{ends: [a, s]}, {name: y, ends: [b, s], spee: 3}]}\n"
    )
    assert main(["validate", str(path)]) == 2
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    places = [line.split(": ")[2] for line in said]
    assert places == [
        "topologies.mine.links[1].spee",
        "profiles.p.phases[0]",
        "profiles.p.phases[1]",
        "topologies.mine.links[0].name",
    ]
    path.write_text("nmae: x\nabuot: y\nschema: 1\n")
    assert main(["validate", str(path)]) == 2
    assert [line.strip() for line in capsys.readouterr().err.splitlines() if "did you" in line] == [
        "did you mean name?",
        "did you mean about?",
    ]


def test_a_new_experiment_refers_to_a_file_and_its_expectation_can_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "mine"]) == 0
    text = Path("mine.yaml").read_text()
    fields = re.search(r"All fields and rules: +(\S+)", text)
    assert fields
    assert Path(fields[1]).is_file()
    assert "at_least: 1.05" in text
    assert main(["validate", "mine.yaml"]) == 0


@pytest.mark.parametrize(
    ("expectation", "found"),
    [
        ({"what": "median iteration time", "at_least": 0}, "at_least: found 0, expected more than 0"),
        ({"what": "sending at once", "of": "fair", "at_least": -3}, "at_least: found -3, expected more than 0"),
        (
            {"what": "speedup of median iteration time", "of": "fair", "over": "fair", "at_least": 1},
            "over: found 'fair', expected another variant: over itself every ratio is 1",
        ),
    ],
)
def test_an_expectation_that_always_holds_is_refused(expectation: dict[str, Any], found: str) -> None:
    fields = {
        **TWO,
        "factors": {"variant": {"fair": {}, "slow": {}}},
        "expect": [{**expectation, "basis": "predicted"}],
    }
    with pytest.raises(SpecError) as refused:
        build_experiment(fields)
    assert found in refused.value.message


@pytest.mark.parametrize(
    ("provider", "fields", "warned"),
    [
        (FluidProvider(), {"repetitions": 2}, "repetitions: found 2, one is run"),
        (PacketsProvider(), {"repetitions": 2}, None),
        (FluidProvider(), {}, "jobs j1, j2: found the same profile and start, 0 ms"),
        (FluidProvider(), {"transport": {"name": "reno"}}, None),
        (
            LabProvider(),
            {"queue": "thresholds"},
            "found thresholds with mltcp_reno: ports mark from 2.8 packets on here",
        ),
        (LabProvider(), {"queue": "thresholds", "transport": {"name": "cubic"}}, "found thresholds with cubic"),
        (LabProvider(), {}, None),
        (LabProvider(dilation=20), {"queue": "thresholds"}, None),
        (FluidProvider(), {"one_job_at_a_time": True}, None),
        (
            FluidProvider(),
            {"jobs": {"j1": {"workers": ["s0", "s2"]}, "j2": {"workers": ["s1", "s3"], "start_offset_ms": 1}}},
            None,
        ),
    ],
)
def test_a_testbed_warns_of_what_it_cannot_show(
    provider: TestbedProvider, fields: dict[str, Any], warned: str | None
) -> None:
    found = provider.find_warnings(build_experiment({**TWO, **fields}))
    assert not found if warned is None else any(warned in text for text in found)


def test_a_plan_estimates_the_report_too(capsys: pytest.CaptureFixture[str]) -> None:
    plan = make_run_plan(FluidProvider(), build_experiment(TWO), {}, {})
    assert plan.report_s > 10  # imports and figures take that long even for one trial
    assert main(["plan", "unfair-vgg19", "--testbed", "fluid"]) == 0
    assert re.search(r"6 trials, about 0 s, and \d+ s for the report", capsys.readouterr().out)


def test_an_unknown_testbed_gets_a_hint() -> None:
    with pytest.raises(UsageError) as refused:
        find_provider({"testbed": "labb"})
    assert refused.value.hint == "did you mean lab?"


def test_doctor_folds_requirements_that_are_met(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Machine(FluidProvider):
        """A machine that meets all requirements but one."""

        def checks(self) -> tuple[Check, ...]:
            return *(Check(f"check {number}", True, "there") for number in range(70)), Check(
                "tc", False, "no tc", "apt"
            )

    monkeypatch.setattr(doctor, "requested_provider", lambda *_: Machine())
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in out] == ["MISSING", "ok"]
    assert out[1].endswith("70 of 71 requirements; --all lists them")
    assert main(["doctor", "--all"]) == 1
    assert len(capsys.readouterr().out.splitlines()) == 71
