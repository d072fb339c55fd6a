# SPDX-License-Identifier: Apache-2.0
"""Plans: the same each time, blocks that hold, and keys that change exactly with what they stand for."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings, strategies as st

from roundabout.plan import Plan, PlannedTrial, make_plan
from roundabout.plan.duration import OVERHEAD_S
from roundabout.spec import EXPERIMENTS, load_experiment

pytestmark = pytest.mark.unit

FLAGSHIP = EXPERIMENTS / "catalog/hotnets22/unfair-vgg19.yaml"
TESTBED = {"kind": "lab", "scale": 50}
ARTEFACTS = {"replay": "abc"}

Edit = Callable[[dict[str, Any]], object]


def plan_of(folder: Path, *edits: Edit) -> Plan:
    """The plan of the flagship experiment after `edits` of its file, of its first profile alone."""
    document = yaml.safe_load(FLAGSHIP.read_text())
    document |= document["factors"].pop("figure")["fig-1"]
    del document["exclude"]
    document["expect"] = [each for each in document["expect"] if each.pop("at") == {"figure": "fig-1"}]
    for edit in edits:
        edit(document)
    path = folder / "edited.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return make_plan(load_experiment(path), TESTBED, ARTEFACTS)


def identity(trial: PlannedTrial) -> tuple[str, str | None, int]:
    return trial.variant, trial.job, trial.repetition


def keys(plan: Plan) -> dict[tuple[str, str | None, int], str]:
    return {identity(trial): trial.key for trial in plan.trials}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("plan")


@pytest.fixture(scope="module")
def flagship(folder: Path) -> Plan:
    return plan_of(folder)


def test_keys_are_different_and_short(flagship: Plan) -> None:
    found = [trial.key for trial in flagship.trials]
    assert len(set(found)) == len(found) == 20
    assert all(len(key) == 16 and int(key, 16) >= 0 for key in found)


def test_the_same_inputs_give_the_same_plan_in_any_process(folder: Path, flagship: Plan) -> None:
    plan_of(folder)
    program = (
        "from roundabout.plan import make_plan; from roundabout.spec import load_experiment; "
        f"plan = make_plan(load_experiment({str(folder / 'edited.yaml')!r}), {TESTBED!r}, {ARTEFACTS!r}); "
        "print(*[trial.key for trial in plan.trials])"
    )
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        found = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, check=True, text=True
        )
        assert found.stdout.split() == [trial.key for trial in flagship.trials]


def test_a_repetition_is_a_block_with_every_trial_once(flagship: Plan) -> None:
    blocks = [flagship.trials[start : start + 4] for start in range(0, 20, 4)]
    assert [{trial.repetition for trial in block} for block in blocks] == [{1}, {2}, {3}, {4}, {5}]
    whole = {("alone", "j1"), ("alone", "j2"), ("fair", None), ("unfair", None)}
    assert all({(trial.variant, trial.job) for trial in block} == whole for block in blocks)
    assert len({tuple((trial.variant, trial.job) for trial in block) for block in blocks}) > 1, "never shuffled"
    assert all(len({trial.seed for trial in block}) == 1 for block in blocks)
    assert len({trial.seed for trial in flagship.trials}) == 5


def test_each_testbed_is_raised_once_a_repetition() -> None:
    plan = make_plan(load_experiment(EXPERIMENTS / "catalog/salamy/cross-traffic-all.yaml"), TESTBED, ARTEFACTS)
    raised = [name for name, _ in groupby(trial.spec.topology.name for trial in plan.trials)]
    assert sorted(set(raised)) == ["configuration-a", "configuration-b"]
    assert len(raised) <= 2 * plan.experiment.repetitions
    firsts = [(trial.variant, *trial.levels.values()) for trial in plan.trials if trial.repetition == 1]
    seconds = [(trial.variant, *trial.levels.values()) for trial in plan.trials if trial.repetition == 2]
    assert sorted(firsts) == sorted(seconds) and firsts != seconds


def test_a_job_alone_is_alone(flagship: Plan) -> None:
    alone = [trial for trial in flagship.trials if trial.variant == "alone"]
    assert all(list(trial.spec.jobs) == [trial.job] for trial in alone)


def test_expected_time_is_contended_iterations_plus_overhead(flagship: Plan) -> None:
    expected = {trial.variant: trial.expected_s - OVERHEAD_S for trial in flagship.trials}
    assert expected["alone"] == pytest.approx(4 * 0.293)
    assert expected["fair"] == pytest.approx(16 * 0.3638, rel=0.001)


def everything(trial: PlannedTrial) -> bool:
    return True


def nothing(trial: PlannedTrial) -> bool:
    return False


def unfair(trial: PlannedTrial) -> bool:
    return trial.variant == "unfair"


def not_j2_alone(trial: PlannedTrial) -> bool:
    return trial.job != "j2"


def not_unfair(trial: PlannedTrial) -> bool:
    return trial.variant != "unfair"


def put(*way: Any) -> Edit:
    """An edit that sets the value at the place `way[:-1]` to `way[-1]`."""

    def edit(document: dict[str, Any]) -> None:
        inside: Any = document
        for step in way[:-2]:
            inside = inside[step]
        inside[way[-2]] = way[-1]

    return edit


EDITS: list[tuple[Edit, Callable[[PlannedTrial], bool]]] = [
    (put("about", "the same in other words"), nothing),
    (put("source", "another paper"), nothing),
    (put("name", "edited"), nothing),
    (put("expect", []), nothing),
    (put("expect", 0, "paper", 1.5), nothing),
    (put("transport", "T_us", 125.0), nothing),
    (put("jobs", "j1", "flows", 1), nothing),
    (put("repetitions", 9), nothing),
    (put("factors", "variant", "slow", {"iterations": 5}), nothing),
    (put("seed", 2), everything),
    (put("transport", "T_us", 130), everything),
    (put("transport", "g", 0.5), everything),
    (put("factors", "size", {"small": {}}), everything),
    (put("iterations", 60), lambda trial: trial.variant != "alone"),
    (put("factors", "variant", "alone", "iterations", 11), lambda trial: trial.variant == "alone"),
    (put("factors", "variant", "unfair", "jobs", "j1", "transport", "T_us", 90), unfair),
    (put("factors", "variant", "unfair", "depends_on", ["fair"]), unfair),
    (put("jobs", "j1", "flows", 2), not_j2_alone),
    (put("jobs", "j1", "jitter", 0.01), not_j2_alone),
    (put("jobs", "j1", "start_offset_ms", 5), not_j2_alone),
    (put("jobs", "j1", "profile", "bert-8"), not_j2_alone),
    (put("jobs", "j1", "workers", ["s2", "s0"]), not_j2_alone),
    (put("jobs", "j1", "transport", {"T_us": 110}), lambda trial: not_j2_alone(trial) and not_unfair(trial)),
]


@pytest.mark.parametrize(("edit", "affected"), EDITS)
def test_an_edit_changes_exactly_the_keys_that_it_affects(
    folder: Path, flagship: Plan, edit: Edit, affected: Callable[[PlannedTrial], bool]
) -> None:
    before, after = keys(flagship), keys(plan_of(folder, edit))
    for trial in flagship.trials:
        assert (before[identity(trial)] != after[identity(trial)]) == affected(trial), identity(trial)


@settings(max_examples=60)
@given(chosen=st.lists(st.sampled_from(EDITS[8:]), max_size=4, unique_by=id))
def test_edits_together_change_the_keys_that_any_of_them_affects(
    folder: Path, flagship: Plan, chosen: list[tuple[Edit, Callable[[PlannedTrial], bool]]]
) -> None:
    before, after = keys(flagship), keys(plan_of(folder, *(edit for edit, _ in chosen)))
    for trial in flagship.trials:
        expected = any(affected(trial) for _, affected in chosen)
        assert (before[identity(trial)] != after[identity(trial)]) == expected, identity(trial)


@pytest.mark.parametrize(
    ("testbed", "artefacts"), [({**TESTBED, "scale": 20}, ARTEFACTS), (TESTBED, {"replay": "abd"}), ({}, {})]
)
def test_keys_differ_by_testbed_and_artifacts(
    flagship: Plan, testbed: dict[str, Any], artefacts: dict[str, str]
) -> None:
    other = make_plan(flagship.experiment, testbed, artefacts)
    assert not {trial.key for trial in other.trials} & {trial.key for trial in flagship.trials}
    assert [identity(trial) for trial in other.trials] == [identity(trial) for trial in flagship.trials]


def test_a_profiles_numbers_are_in_the_key_and_its_prose_is_not(folder: Path, flagship: Plan) -> None:
    def planned(passage: str, replacement: str) -> Plan:
        document = json.loads(flagship.experiment.model_dump_json().replace(passage, replacement))
        return make_plan(type(flagship.experiment).model_validate(document), TESTBED, ARTEFACTS)

    assert keys(planned("The paper prints no profile", "We found no profile")) == keys(flagship)
    assert not set(keys(planned('"compute_ms":150.0', '"compute_ms":151.0')).values()) & set(keys(flagship).values())


def test_variants_with_equal_content_are_still_different_trials(folder: Path) -> None:
    plan = plan_of(folder, put("factors", "variant", "again", {}))
    assert len({trial.key for trial in plan.trials}) == len(plan.trials) == 25


def test_dependencies_come_first_and_are_in_the_key(folder: Path) -> None:
    plan = plan_of(
        folder,
        put("factors", "variant", "fair", {"depends_on": ["unfair"]}),
        put("factors", "variant", "unfair", "depends_on", ["alone"]),
        put("factors", "seconds", {"few": {}, "many": {"iterations": 20}}),
    )
    place = {trial.key: number for number, trial in enumerate(plan.trials)}
    by_key = {trial.key: trial for trial in plan.trials}
    assert len(place) == 5 * 2 * 4
    for trial in plan.trials:
        needed = [by_key[key] for key in trial.depends_on]
        assert len(needed) == {"alone": 0, "unfair": 2, "fair": 1}[trial.variant]
        assert all(place[other.key] < place[trial.key] for other in needed)
        assert all(
            (other.repetition, other.levels["seconds"]) == (trial.repetition, trial.levels["seconds"])
            for other in needed
        )


@settings(max_examples=40)
@given(seed=st.integers(0, 2**63 - 1), repetitions=st.integers(1, 6))
def test_blocks_hold_under_any_seed(folder: Path, seed: int, repetitions: int) -> None:
    plan = plan_of(folder, put("seed", seed), put("repetitions", repetitions))
    assert len(plan.trials) == plan.experiment.trial_count == 4 * repetitions
    assert [trial.repetition for trial in plan.trials] == sorted(trial.repetition for trial in plan.trials)
    assert {identity(trial) for trial in plan.trials} == {
        (variant, job, repetition)
        for variant, job in (("alone", "j1"), ("alone", "j2"), ("fair", None), ("unfair", None))
        for repetition in range(1, repetitions + 1)
    }


def test_a_trial_with_inputs_comes_after_the_trials_that_give_them(folder: Path) -> None:
    def take(document: dict[str, Any]) -> None:
        document["factors"]["variant"]["unfair"]["jobs"]["j1"]["inputs"] = {"profile": "alone"}

    plan = plan_of(folder, take)
    places = {trial.key: place for place, trial in enumerate(plan.trials)}
    for trial in plan.trials:
        alone = {other.key for other in plan.trials if (other.variant, other.repetition) == ("alone", trial.repetition)}
        assert set(trial.depends_on) == (alone if trial.variant == "unfair" else set())
        assert all(places[key] < places[trial.key] for key in trial.depends_on)


def test_expected_times_count_the_jobs_that_are_there(folder: Path) -> None:
    """j2 comes when j1 has long departed, and runs iterations of its own: they never share the link."""

    def timeline(document: dict[str, Any]) -> None:
        document["jobs"]["j1"]["departs_ms"] = 5_000
        document["jobs"]["j2"] |= {"arrives_ms": 6_000, "iterations": 20}

    plan = plan_of(folder, timeline)
    fair = next(trial for trial in plan.trials if trial.variant == "fair")
    assert fair.expected_s - OVERHEAD_S == pytest.approx(6 + 20 * 0.293)
    alone = next(trial for trial in plan.trials if trial.job == "j2")
    assert alone.expected_s - OVERHEAD_S == pytest.approx(20 * 0.293)
