# SPDX-License-Identifier: Apache-2.0
"""Jobs that meet in the mean field: what must hold whatever the parameters, and how finely time must be cut."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from roundabout.models.fluid.dcqcn import PACKET_BYTES
from roundabout.models.fluid.mean_field_dcqcn import (
    MeanFieldIntegration,
    ScenarioError,
    SharedLinkScenario,
    compute_scenarios,
    scenario_jobs,
)
from roundabout.spec import Profile, Transport, TrialSpec, load_experiment
from roundabout.spec.transports import FOLDER
from roundabout.spec.transports.registry import TREE, find_declaration
from roundabout.spec.transports.sets import find_published

pytestmark = pytest.mark.unit

FIGURE_1 = next(cell for cell in load_experiment("unfair-vgg19").cells if cell.variant == "fair").spec
SHORTER = 10  # of the paper's iteration, so that tests take no minutes
ECN = {"Kmin_bytes": 80_000.0, "Kmax_bytes": 160_000.0, "Pmax": 1.0}


def shorter(profile: Profile) -> Profile:
    compute, send = profile.phases
    size, alone_ms = compute.compute_ms / SHORTER, send.alone_ms / SHORTER
    compute = compute.model_copy(update={"compute_ms": size})
    send = send.model_copy(update={"bytes": send.bytes // SHORTER, "alone_ms": alone_ms})
    return profile.model_copy(update={"phases": (compute, send)})


def trial(of_each: Mapping[str, Any] | None = None, **of_jobs: Mapping[str, Any]) -> TrialSpec:
    """Figure 1's two jobs, quicker; what a job says of its transport goes before what is said of each."""
    jobs = {}
    for name, job in FIGURE_1.jobs.items():
        content = {"name": "dcqcn", "set": "sigcomm15", "T_us": 125} | dict(of_each or {}) | dict(of_jobs.get(name, {}))
        transport = Transport.model_validate(content, context={FOLDER: "."})
        jobs[name] = job.model_copy(update={"transport": transport, "profile": shorter(job.profile)})
    return FIGURE_1.model_copy(update={"jobs": jobs})


def alone(spec: TrialSpec) -> TrialSpec:
    return spec.with_one_job("j1")


TRIALS = {"fair": trial(), "first": trial(j1={"T_us": 100}), "second": trial(j2={"T_us": 100})} | {
    "nvidia": trial({"set": "nvidia"}),
    "nvidia first": trial({"set": "nvidia"}, j1={"T_us": 100}),
}


@pytest.fixture(scope="module")
def computed() -> Mapping[str, SharedLinkScenario]:
    """Return two iterations of each of TRIALS, computed together, because five trials take as long as one."""
    return dict(zip(TRIALS, compute_scenarios(list(TRIALS.values()), iterations=2), strict=True))


def test_a_job_alone_takes_what_its_profile_says_and_marks_nothing():
    found = compute_scenarios([alone(trial())], iterations=3)[0]
    assert found.iteration_ms("j1") == pytest.approx([29.3] * 3, abs=0.05)
    assert found.marks == {"j1": 0}
    assert found.first_gbps is None


def test_jobs_that_are_alike_get_the_same_and_stay_together(computed: Mapping[str, SharedLinkScenario]):
    found = computed["fair"]
    assert found.share == pytest.approx(1)
    assert found.spans["j1"] == pytest.approx(found.spans["j2"])
    # Shared like water an iteration takes 36.4 ms; what marks cost comes on top, and much of it in so short a phase.
    assert 36.3 < found.settled_ms("j1") < 55


@pytest.mark.proof
def test_a_smaller_timer_gets_more_bandwidth_and_both_jobs_gain():
    fair, unfair = compute_scenarios([trial({"ecn": ECN}), trial({"ecn": ECN}, j1={"T_us": 100})], iterations=30)
    assert unfair.share > 1.1
    for job in ("j1", "j2"):
        assert fair.settled_ms(job) / unfair.settled_ms(job) > 1.1


def test_exchanging_the_jobs_parameters_exchanges_their_results(computed: Mapping[str, SharedLinkScenario]):
    one, other = computed["first"], computed["second"]
    assert one.spans["j1"] == pytest.approx(other.spans["j2"])
    assert one.share == pytest.approx(1 / other.share)


def test_trials_are_computed_apart():
    specs = [trial(j1={"T_us": 90}), trial({"set": "nvidia"}), alone_with_two()]
    for spec, found in zip(specs, compute_scenarios(specs, iterations=1), strict=True):
        by_itself = compute_scenarios([spec], iterations=1)[0]
        assert found.first_gbps == (by_itself.first_gbps and pytest.approx(by_itself.first_gbps, rel=1e-9))
        assert found.marks == pytest.approx(by_itself.marks)
        assert found.queue_bytes == pytest.approx(by_itself.queue_bytes)
        assert found.spans["j2"][:1] == pytest.approx(by_itself.spans["j2"][:1])


def alone_with_two() -> TrialSpec:
    """Two jobs that never meet."""
    spec = trial()
    late = spec.jobs["j2"].model_copy(update={"start_offset_ms": 14.65})
    return spec.model_copy(update={"jobs": {**spec.jobs, "j2": late}})


def test_jobs_that_interleave_from_the_start_never_meet():
    found = compute_scenarios([alone_with_two()], iterations=3)[0]
    assert found.share is None
    assert found.iteration_ms("j2") == pytest.approx([29.3] * 3, abs=0.05)


SETS = st.sampled_from(["sigcomm15", "hpcc", "nvidia"])
THRESHOLDS = st.builds(
    lambda low, width, pmax: {"Kmin_bytes": low, "Kmax_bytes": low + width, "Pmax": pmax},
    st.floats(1e3, 2e5), st.floats(1e3, 1e6), st.floats(0.01, 1.0)
)  # fmt: skip


@given(
    drawn=st.lists(st.tuples(st.floats(20.0, 400.0), SETS, THRESHOLDS), min_size=5, max_size=5),
    step_us=st.sampled_from([5.0, 10.0]),
)
@settings(deadline=None, max_examples=2)
def test_sent_bytes_are_carried_or_queued(drawn, step_us):
    """Five trials are drawn at a time, because they take as long as one."""
    specs = [trial({"set": set_, "ecn": thresholds}, j1={"T_us": T_us}) for T_us, set_, thresholds in drawn]
    play = MeanFieldIntegration(scenario_jobs(specs), 1, step_us, 1)
    arrived, first = np.zeros(len(specs)), np.ones(len(specs), bool)
    while first.any():
        unsent, queue, now = play.unsent.sum(axis=0), play.queue, play.now.copy()
        beginning = (play.jobs.bytes * (~play.sending & (play.until <= now + 1e-6))).sum(axis=0)
        play.step()
        sent, could = unsent + beginning - play.unsent.sum(axis=0), (play.now - now) * play.jobs.capacity
        left = queue + sent - play.queue
        assert (sent >= -1e-6).all()
        assert (left <= could * (1 + 1e-9)).all()  # no more than the link carries
        assert (left >= could * (1 - 1e-6))[play.queue > 0].all()  # and all of that while any waits
        arrived += left * first
        ended = first & (play.done.max(axis=0) >= 1)
        carried = (play.jobs.bytes.sum(axis=0) - play.unsent.sum(axis=0) - play.queue)[ended]
        assert arrived[ended] == pytest.approx(carried, abs=1e-3)
        first &= ~ended


def test_halving_the_step_changes_results_by_under_5_percent(computed: Mapping[str, SharedLinkScenario]):
    names = ["fair", "first", "nvidia", "nvidia first"]
    fine = compute_scenarios([TRIALS[name] for name in names], iterations=1, step_us=5.0)
    for one, other in zip(map(computed.__getitem__, names), fine, strict=True):
        assert one.share == pytest.approx(other.share, rel=0.05)
        assert one.iteration_ms("j2")[0] == pytest.approx(other.iteration_ms("j2")[0], rel=0.05)


def test_marks_are_counted_of_packets():
    found = compute_scenarios([trial({"ecn": {"Kmin_bytes": 1.0, "Kmax_bytes": 1.0, "Pmax": 1.0}})], iterations=1)[0]
    packets = trial().jobs["j1"].profile.phases[1].bytes / PACKET_BYTES
    assert 0 < found.marks["j1"] < packets


SIGCOMM15 = find_published(find_declaration("dcqcn"), "sigcomm15").parameters
# With steps of 400 Mbit/s a flow is at the line rate again after its computing phase; with 40 jobs do not come apart.
MLTCP = {"name": "mltcp_dcqcn", "set": None, "ecn": ECN} | SIGCOMM15 | {"T_us": 125, "R_AI_mbps": 400}


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transport that declares what dcqcn does, and MLTCP's numbers."""
    folder = tmp_path / "transports/mltcp_dcqcn"
    folder.mkdir(parents=True)
    declared = (TREE / "dcqcn/dcqcn_params.h").read_text()
    for name, value in (("slope", 1.75), ("intercept", 0.25)):
        declared += f'PARAMETER(__u32, {name}_q24, "2^-24", experiment, {value}, 0, 100, "of F");\n'
    (folder / "mltcp_dcqcn.bpf.c").write_text(declared)
    monkeypatch.setenv("ROUNDABOUT_PATH", str(tmp_path))


def later(spec: TrialSpec) -> TrialSpec:
    """The second job comes 5 ms after the first: a third of what it takes to send."""
    moved = spec.jobs["j2"].model_copy(update={"start_offset_ms": 5.0})
    return spec.model_copy(update={"jobs": {**spec.jobs, "j2": moved}})


def test_with_mltcp_who_is_ahead_gets_more_and_jobs_come_apart(outside: None):
    plain, mltcp = compute_scenarios([later(trial(MLTCP | {"name": "dcqcn"})), later(trial(MLTCP))], iterations=5)
    assert plain.share == pytest.approx(1, abs=0.02)
    assert mltcp.share > 1.1
    assert mltcp.settled_ms("j1") == pytest.approx(29.3, abs=0.05) == mltcp.settled_ms("j2")
    assert plain.settled_ms("j1") > 1.2 * mltcp.settled_ms("j1")


def test_mltcp_scales_r_ai_and_r_hai_and_adaptive_unfairness_r_ai_only(outside: None):
    both = trial(MLTCP, j2={"slope": 1.0, "intercept": 1.0})
    jobs = scenario_jobs([both, trial(MLTCP | {"name": "dcqcn"})])
    adaptive = replace(jobs, hyper=np.array([[True, True], [False, True]]))
    found = adaptive.reaction_with_unsent(jobs.bytes * np.array([[1.0, 0.5], [0.5, 0.5]]))
    np.testing.assert_allclose(found.R_AI / jobs.reaction.R_AI, [[0.25, 1.0], [1.5, 1.0]])
    np.testing.assert_allclose(found.R_HAI / jobs.reaction.R_HAI, [[0.25, 1.0], [1.0, 1.0]])
    ended = adaptive.reaction_with_unsent(0 * jobs.bytes).R_AI / jobs.reaction.R_AI
    np.testing.assert_allclose(ended, [[2.0, 1.0], [2.0, 1.0]])


def ranked(spec: TrialSpec) -> TrialSpec:
    ranks = zip(spec.jobs.items(), (2, 1), strict=True)
    return spec.model_copy(update={"jobs": {n: job.model_copy(update={"priority": rank}) for (n, job), rank in ranks}})


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (ranked(trial()), "job j1: found a queue of its own by its priority"),
        (trial({"set": None}), "found no thresholds"),
        (trial(j1={"ecn": ECN}), "found no thresholds, or several"),
        (
            trial({"name": "cubic", "set": None, "T_us": None, "ecn": ECN}),
            "found transport cubic, expected dcqcn, or MLTCP over it",
        ),
    ],
)
def test_trials_outside_the_mean_field_model_are_refused(spec: TrialSpec, message: str):
    with pytest.raises(ScenarioError, match=message):
        compute_scenarios([spec], iterations=1)
