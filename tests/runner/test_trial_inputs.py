# SPDX-License-Identifier: Apache-2.0
"""Trials that take values from others: played as taken, hashed as declared, and never made up."""

from dataclasses import replace

import pytest

from roundabout.spec import InputValue, TrialSpec, load_profile
from roundabout.spec.loader import load_experiment
from roundabout.store import StoreError

pytestmark = pytest.mark.unit

VARIANTS = (
    "alone: {one_job_at_a_time: true}, "
    "shifted: {jobs: {j1: {inputs: {profile: alone}}, j2: {inputs: {start_offset_ms: alone}}}}"
)


def started(work, tiny, give):
    path = work.write(tiny(variants=VARIANTS))
    runner = replace(work.runner, resolve_inputs=give)
    run = runner.start(load_experiment(path), str(path), work.runs)
    return run, {trial["variant"]: trial for trial in run.trials()}


def test_inputs_of_a_trial_are_played_and_recorded(work, tiny):
    requested = []

    def give(run, spec, needs):
        requested.append((sorted(run.committed()), sorted(needs)))
        profile = load_profile("vgg19-fig1").model_copy(update={"name": "seen"})
        return {
            "j1": {"profile": InputValue(profile, ("k1",))},
            "j2": {"start_offset_ms": InputValue(1.5, ("k1", "k2"))},
        }

    run, trials = started(work, tiny, give)
    ((committed, needs),) = requested
    alone = sorted(trial["trial"] for trial in run.trials() if trial["variant"] == "alone")
    assert committed == needs == alone
    shifted = trials["shifted"]
    assert shifted["valid"]
    assert shifted["given"]["j2"] == {"start_offset_ms": {"value": 1.5, "trials": ["k1", "k2"]}}
    assert shifted["given"]["j1"]["profile"]["value"]["name"] == "seen"
    played = TrialSpec.model_validate(shifted["spec"])
    assert (played.jobs["j1"].profile.name, played.jobs["j2"].start_offset_ms) == ("seen", 1.5)
    assert played.jobs["j1"].inputs == {"profile": "alone"}
    assert shifted["trial"] in {trial["key"] for trial in run.manifest["plan"]}, "hashed as declared"
    assert "given" not in trials["alone"]


def test_a_trial_without_its_inputs_is_invalid_and_says_why(work, tiny):
    def give(run, spec, needs):
        raise StoreError("found no valid trial of j1 alone, expected one")

    run, trials = started(work, tiny, give)
    assert not trials["shifted"]["valid"]
    assert trials["shifted"]["reason"] == "found no valid trial of j1 alone, expected one"
    assert work.notes.ended[-1] == ("shifted", ["found no valid trial of j1 alone, expected one"], False)
    assert len(run.trials()) == 3
