# SPDX-License-Identifier: Apache-2.0
"""What trials take from others: profiles out of counters, and shifts under which jobs do not meet."""

import pytest

from analysis.reading.trial_inputs import resolve_inputs
from roundabout.models.fluid import ResidualCapacity, fluid_jobs, residual_of_loads
from roundabout.spec import TrialSpec, load_experiment
from roundabout.store import StoreError
from tests.fluid.oracle.model import Simulation

pytestmark = [pytest.mark.unit, pytest.mark.usefixtures("few_resamplings")]


def taking(**inputs):
    """The flagship's fair trial, whose jobs take these fields from `alone`."""
    spec = next(cell.spec for cell in load_experiment("unfair-vgg19").cells if cell.variant == "fair")
    jobs = {name: job.model_copy(update={"inputs": inputs.get(name, {})}) for name, job in spec.jobs.items()}
    return spec.model_copy(update={"jobs": jobs})


def needs(run):
    return [trial["trial"] for trial in run.trials() if trial["variant"] == "alone"]


def test_a_profile_is_what_the_counters_of_the_trial_alone_show(make_run):
    run = make_run(repetitions=1)
    values = resolve_inputs(run, taking(j1={"profile": "alone"}), needs(run))
    assert list(values) == ["j1"]
    profile, (trial,) = values["j1"]["profile"]
    assert profile.alone_ms == pytest.approx(293, rel=0.02)
    assert profile.comm_ms == pytest.approx(143, rel=0.02)
    assert [phase.pattern for phase in profile.phases if phase.bytes] == ["ring"]
    record = next(each for each in run.trials() if each["trial"] == trial)
    assert (record["variant"], record["job"]) == ("alone", "j1")
    TrialSpec.model_validate(taking().with_inputs(values).model_dump(mode="json", by_alias=True))


@pytest.mark.parametrize("takers", [("j1", "j2"), ("j2",), ("j1",)])
def test_under_the_time_shifts_given_the_jobs_do_not_slow_each_other_down(make_run, takers):
    run = make_run(repetitions=1)
    spec = taking(**{taker: {"start_offset_ms": "alone", "profile": "alone"} for taker in takers})
    shifted = spec.with_inputs(resolve_inputs(run, spec, needs(run)))
    course = Simulation(list(fluid_jobs(shifted).values()), ResidualCapacity.constant(residual_of_loads(shifted)))
    for _ in course:
        pass
    for workers in course.iterations:
        times_ms = [iteration.end_ms - iteration.start_ms for iteration in workers[0]]
        assert sum(times_ms[3:6]) / 3 == pytest.approx(293, rel=0.025)  # 364 from a common start


def test_without_the_trial_there_is_no_value(make_run):
    run = make_run(repetitions=1)
    with pytest.raises(StoreError, match="no valid trial of j1 alone"):
        resolve_inputs(run, taking(j1={"profile": "alone"}), [])
    with pytest.raises(StoreError, match="no valid trial of j1 alone"):
        resolve_inputs(run, taking(j1={"profile": "other"}), needs(run))
