# SPDX-License-Identifier: Apache-2.0
"""The parts of delays: they sum to the whole, and the largest is the cause that was planted."""

from collections.abc import Mapping
from dataclasses import replace
from statistics import fmean

import pytest

from analysis.attribution.attribution import MIN_SHARE
from analysis.attribution.counterfactuals import (
    over_all_paths,
    with_fair_shares,
    without_agents,
    without_events,
    without_traffic,
)
from analysis.attribution.decomposition import Source, decompose
from tests.analysis.attribution import planted_causes as planted
from tests.analysis.attribution.replayed_trials import play

SEEDS = range(1, 6)
FLOW_LEVEL = ("neighbor", "cross_traffic", "one_path", "slow_worker", "slow_job", "slow_link")
"""The planted causes that the flow-level model has, too."""
SUM_MS = 1e-9


def first_cause(parts: Mapping[Source, float]) -> Source:
    """Return the source of the largest part."""
    return max((each for each in parts if each.cause != "unexplained"), key=parts.__getitem__)


def named_causes(parts: Mapping[Source, float], alone_ms: float) -> list[Source]:
    """Return the sources of at least MIN_SHARE of an iteration, if the whole delay is as large."""
    least_ms = MIN_SHARE * alone_ms
    return [each for each, ms in parts.items() if ms >= least_ms] if sum(parts.values()) >= least_ms else []


@pytest.mark.unit
@pytest.mark.parametrize("name", FLOW_LEVEL)
def test_planted_cause_is_the_largest_part_flow_by_flow(name):
    case = getattr(planted, name)()
    trial, models = play(case, 1, "fluid")
    first = first_cause(decompose(trial, models)["j1"])
    assert (first.cause, first.name) == (case.cause, case.name)


@pytest.mark.unit
@pytest.mark.parametrize("case", planted.HARMLESS)
def test_nothing_is_named_without_a_cause_flow_by_flow(case):
    trial, models = play(case(), 1, "fluid")
    assert named_causes(decompose(trial, models)["j1"], trial.spec.jobs["j1"].profile.alone_ms) == []


@pytest.mark.unit
@pytest.mark.parametrize("case", [*planted.CAUSES, *planted.HARMLESS])
def test_parts_of_a_computed_trial_sum_to_the_whole_without_a_rest(case):
    """The rest, `unexplained`, has what the other parts leave of the whole, so it must be 0 here."""
    trial, models = play(case(), 1, "fluid")
    for job, parts in decompose(trial, models).items():
        assert parts[Source("unexplained")] == pytest.approx(0, abs=SUM_MS)
        delay_ms = trial.mean_ms[job] - trial.spec.jobs[job].profile.alone_ms
        assert sum(parts.values()) == pytest.approx(delay_ms, abs=SUM_MS)


@pytest.mark.unit
def test_another_job_is_named_with_the_link_where_both_meet():
    trial, models = play(planted.neighbor(), 1, "fluid")
    assert Source("job", "j2", "L1") in decompose(trial, models)["j1"]


@pytest.mark.unit
def test_a_slow_worker_and_another_job_that_act_together_share_what_they_save_each_other():
    """A slow worker moves j1 out of the way of j2. In whichever order both come, each has what it adds on average."""
    slow = play(planted.slow_worker_beside(planted.neighbor), 1, "fluid")[0].mean_ms["j1"]
    alone_ms = planted.COMPUTE_MS + planted.SEND_MS
    beside_j2_ms = play(planted.neighbor(), 1, "fluid")[0].mean_ms["j1"] - alone_ms
    slow_ms = play(planted.slow_worker(), 1, "fluid")[0].mean_ms["j1"] - alone_ms
    parts = decompose(*play(planted.slow_worker_beside(planted.neighbor), 1, "fluid"))["j1"]
    both_ms = slow - alone_ms
    assert parts[Source("job", "j2", "L1")] == pytest.approx((beside_j2_ms + both_ms - slow_ms) / 2)
    assert parts[Source("slowest worker")] == pytest.approx((slow_ms + both_ms - beside_j2_ms) / 2)


@pytest.mark.unit
def test_equal_jobs_share_a_delay_equally():
    trial, models = play(planted.equal_jobs(4), 1, "fluid")
    for job, parts in decompose(trial, models).items():
        others = [ms for source, ms in parts.items() if source.cause == "job"]
        assert len(others) == len(trial.spec.jobs) - 1
        assert others == pytest.approx([fmean(others)] * len(others)), job


@pytest.mark.unit
def test_pauses_by_other_jobs_are_divided_among_these():
    """PFC pauses j1 since j2 and j3 meet behind a link that j1 crosses, too; fair shares delay j1 by nothing."""
    trial, models = play(planted.marking_off(), 1, "packets")
    parts = decompose(trial, replace(models, divides_transport=True))["j1"]
    divided = {source.beside: ms for source, ms in parts.items() if source.cause == "transport"}
    delay_ms = trial.mean_ms["j1"] - trial.spec.jobs["j1"].profile.alone_ms
    assert divided["j2"] == pytest.approx(divided["j3"], rel=0.2)
    assert divided["j2"] + divided["j3"] == pytest.approx(delay_ms, rel=0.05)
    assert divided[""] == pytest.approx(0, abs=0.01)
    assert parts[Source("unexplained")] == pytest.approx(0, abs=SUM_MS)


@pytest.mark.unit
def test_what_a_model_does_not_compute_is_unexplained():
    trial, models = play(planted.neighbor(), 1, "fluid")
    trial.mean_ms["j1"] += 1.25
    parts = decompose(trial, models)["j1"]
    assert parts[Source("unexplained")] == pytest.approx(1.25)


@pytest.mark.unit
@pytest.mark.parametrize("change", [without_events, with_fair_shares, over_all_paths, without_agents])
def test_a_trial_without_a_cause_stays_as_it_is(change):
    spec = planted.alone().spec
    assert change(spec) == spec


@pytest.mark.unit
@pytest.mark.proof
@pytest.mark.parametrize("case", planted.CAUSES)
def test_planted_cause_is_named_first_packet_by_packet(case):
    """Print the delay and the cause's part, ms, and in how many trials the cause is first."""
    found, first, delays_ms, parts_ms = case(), 0, [], []
    for seed in SEEDS:
        trial, models = play(found, seed, "packets")
        parts = decompose(trial, models)["j1"]
        alone_ms = trial.spec.jobs["j1"].profile.alone_ms
        assert parts[Source("unexplained")] == pytest.approx(0, abs=SUM_MS)
        source = first_cause(parts)
        first += source in named_causes(parts, alone_ms) and (source.cause, source.name) == (found.cause, found.name)
        delays_ms.append(trial.mean_ms["j1"] - alone_ms)
        parts_ms.append(sum(ms for each, ms in parts.items() if (each.cause, each.name) == (found.cause, found.name)))
    print(
        f"\n| {case.__name__.replace('_', ' ')} | {fmean(delays_ms):.2f} | {found.cause} {found.name} | "
        f"{fmean(parts_ms):.2f} ({min(parts_ms):.2f} to {max(parts_ms):.2f}) | {first} of {len(SEEDS)} |"
    )
    assert first == len(SEEDS)


@pytest.mark.unit
@pytest.mark.proof
@pytest.mark.parametrize("case", planted.HARMLESS)
def test_nothing_is_named_without_a_cause_packet_by_packet(case):
    for seed in SEEDS:
        trial, models = play(case(), seed, "packets")
        parts = decompose(trial, models)["j1"]
        assert parts[Source("unexplained")] == pytest.approx(0, abs=SUM_MS)
        assert named_causes(parts, trial.spec.jobs["j1"].profile.alone_ms) == []


@pytest.mark.unit
@pytest.mark.proof
@pytest.mark.parametrize("case", [planted.neighbor, planted.one_path, planted.slow_link, planted.paced_sender])
def test_both_of_two_planted_causes_are_named_packet_by_packet(case):
    """Print the parts of both causes, ms, and in how many trials both are named."""
    found, both, other_ms, slow_ms = planted.slow_worker_beside(case), 0, [], []
    for seed in SEEDS:
        trial, models = play(found, seed, "packets")
        parts = decompose(trial, models)["j1"]
        named = {(each.cause, each.name) for each in named_causes(parts, trial.spec.jobs["j1"].profile.alone_ms)}
        both += named >= {(found.cause, found.name), ("slowest worker", "")}
        slow_ms.append(parts[Source("slowest worker")])
        other_ms += [ms for each, ms in parts.items() if (each.cause, each.name) == (found.cause, found.name)]
    print(f"\n| {case.__name__} | {fmean(other_ms):.2f} | {fmean(slow_ms):.2f} | {both} of {len(SEEDS)} |")
    assert both == len(SEEDS)


@pytest.mark.unit
@pytest.mark.proof
def test_a_job_of_two_has_what_its_removal_saves_packet_by_packet():
    """The trial without j2, played packet by packet, is the witness of the parts of j2."""
    for seed in SEEDS:
        trial, models = play(planted.neighbor(), seed, "packets")
        parts = decompose(trial, replace(models, divides_transport=True))["j1"]
        without = without_traffic(trial.spec, frozenset({"j1"}))
        saved_ms = trial.mean_ms["j1"] - fmean(models.replay(without, trial.computing.slowest)["j1"])
        of_j2 = sum(ms for source, ms in parts.items() if "j2" in {source.name, source.beside})
        assert of_j2 == pytest.approx(saved_ms, rel=0.01), "computing times that vary are removed between the two parts"
