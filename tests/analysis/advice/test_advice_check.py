# SPDX-License-Identifier: Apache-2.0
"""`roundabout advise --check`: the experiment that it writes, and what that shows in the fluid testbed."""

import pytest
import yaml

from analysis.advice import expected_slowdown
from analysis.advice.advice import JobGroup, Verdict
from analysis.advice.advice_check import experiment
from analysis.advice.errors import AdviceError
from analysis.advice.expected_slowdown import Outlook
from analysis.advice.observed_jobs import observe_run
from analysis.statistics import phases
from analysis.statistics.phases import Estimate
from roundabout.cli.main import main
from roundabout.spec import load_experiment
from roundabout.spec.cassini import Timetable
from tests.analysis.run_verdicts import judge_run
from tests.computed_runs import compute_run

pytestmark = pytest.mark.unit

COMPUTE = {"name": "compute", "compute_ms": 110, "source": "ours"}
SEND = {"name": "send", "bytes": 450_000_000, "alone_ms": 90, "source": "ours"}
OBSERVED = {
    "name": "observed",
    "about": "Each job alone; j2 sends first, and j3 shares no link with j1",
    "topology": "chain-2-2-2",
    "jobs": {
        "j1": {"profile": "twin", "workers": ["s0", "s2"]},
        "j2": {"profile": "turned", "workers": ["s1", "s4"], "transport": {"T_us": 55}},
        "j3": {"profile": "twin", "workers": ["s3", "s5"]},
    },
    "iterations": 15,
    "one_job_at_a_time": True,
    "transport": {"name": "dcqcn"},
    "profiles": {
        "twin": {"model": "none", "phases": [COMPUTE, SEND]},
        "turned": {"model": "none", "phases": [SEND, COMPUTE]},
    },
}


@pytest.fixture(scope="module")
def observed(tmp_path_factory):
    path = tmp_path_factory.mktemp("check") / "observed.yaml"
    path.write_text(yaml.dump(OBSERVED, Dumper=Plain))
    return compute_run(path)


class Plain(yaml.SafeDumper):
    """Our YAML has no aliases."""

    def ignore_aliases(self, data):
        return True


@pytest.fixture(scope="module")
def check(observed):
    path = observed.path.parents[2] / "pairs.yaml"
    with pytest.MonkeyPatch.context() as little_work:
        little_work.setattr(phases, "RESAMPLINGS", 5)
        little_work.setattr(expected_slowdown, "DRAWS", 5)
        little_work.setattr(expected_slowdown, "FLOW_LEVEL_ERROR", 1.0)
        assert main(["advise", str(observed.path), "--check", str(path)]) == 0
    return path


def test_jobs_are_played_as_they_were_and_as_was_advised(check):
    written = load_experiment(check)
    cells = {tuple(cell.levels.values()): cell.spec for cell in written.cells}
    variants = ("alone", "shared", "shifted")
    assert list(cells) == [(pair, each) for pair in ("j1-j2", "j2-j3") for each in variants], "j1 and j3 never meet"
    spec = cells["j1-j2", "shifted"]
    assert spec.topology.name == "chain-2-2-2"
    assert spec.jobs["j2"].transport.parameters["T_us"] == 55
    assert [phase.name for phase in spec.jobs["j2"].profile.phases] == ["compute", "send"], "as it was found"
    assert spec.cassini.timetables.keys() == {"j1", "j2"}
    assert cells["j1-j2", "shared"].cassini is None
    assert {(each.of, each.over, each.at["jobs-that-meet"]) for each in written.expect} == {
        (of, "shared", pair) for of in ("alone", "shifted") for pair in ("j1-j2", "j2-j3")
    }


def test_advice_is_judged_by_the_run_that_checks_it(check):
    run = compute_run(check)
    trial = next(trial for trial in run.trials() if trial["variant"] == "shifted")
    for name, job in trial["spec"]["jobs"].items():
        assert job["timetable"] == trial["spec"]["cassini"]["timetables"][name], "neither sought nor stretched again"
        assert trial["given"][name]["timetable"]["trials"] == []
    verdicts = judge_run(run)
    assert [each.verdict for each in verdicts] == ["pass"] * 4
    assert min(each.measured for each in verdicts) > 1.2


def test_jobs_are_shifted_only_where_that_is_advised(observed, tmp_path, monkeypatch):
    monkeypatch.setattr(phases, "RESAMPLINGS", 5)
    jobs, _ = observe_run(observed)
    cost = Estimate(1.2, 1.1, 1.3)
    timetable = Timetable(shift_ms=0, period_ms=210, threshold_ms=1)

    def met(*names, verdict=Verdict.SHARE):
        each = dict.fromkeys(names, cost)
        return JobGroup(
            names, verdict, "", 1.0, Outlook(dict.fromkeys(names, timetable), each, cost, {}, {}, cost, None)
        )

    path = tmp_path / "some.yaml"
    some = [met("j1", "j2"), met("j2", "j3", verdict=Verdict.SHIFT)]
    path.write_text(yaml.safe_dump(experiment("some", observed, jobs, some)))
    found = [tuple(cell.levels.values()) for cell in load_experiment(path).cells]
    assert ("j2-j3", "shifted") in found
    assert ("j1-j2", "shifted") not in found
    path.write_text(yaml.safe_dump(experiment("some", observed, jobs, some[:1])))
    assert load_experiment(path).variants == ("alone", "shared")
    with pytest.raises(AdviceError, match="found no jobs with advice that share a link"):
        experiment("some", observed, jobs, [met("j1", "j3")])


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--check", "pairs.txt"], "expected a name that ends in .yaml"),
        (["--check", "pairs.yaml", "--capacity", "40"], "found a capacity, expected a run alone"),
    ],
)
def test_advice_that_cannot_be_checked_is_refused(observed, options, complaint, capsys):
    assert main(["advise", str(observed.path), *options]) == 2
    assert complaint in capsys.readouterr().err


def test_counters_have_no_transport(tmp_path, capsys):
    assert main(["advise", str(tmp_path / "bytes.csv"), "--check", str(tmp_path / "pairs.yaml")]) == 2
    assert "found counters, which have neither topology nor transport" in capsys.readouterr().err
