# SPDX-License-Identifier: Apache-2.0
"""What advice expects of random mixes of jobs, beside what then becomes of them."""

from typing import NamedTuple

import pytest

from analysis.advice import expected_slowdown as expected
from analysis.advice.advice import JobGroup, Verdict, advise_group
from analysis.advice.observed_jobs import observe_counters
from analysis.statistics import phases
from analysis.statistics.phases import Estimate
from tests.analysis.advice import random_jobs

pytestmark = pytest.mark.unit

MIXES = 50
MIN_WITHIN, MAX_WITHOUT, MAX_SLOWER = 0.9, 0.2, 1.03


class Beside(NamedTuple):
    """A figure as it was expected and as it was measured."""

    expected: Estimate
    measured: float

    @property
    def within(self):
        return self.expected.low <= self.measured <= self.expected.high

    def __str__(self):
        low, high = self.expected.low, self.expected.high
        return f"{self.expected.value:.3f} ({low:.3f} to {high:.3f}) {self.measured:.3f}{' ' if self.within else '!'}"


class Held(NamedTuple):
    """A mix: what was advised; the mean cost of sharing, and the mean gain where a shift was found, worth it or not.

    `chance` is the gain over jobs that begin anywhere, `slower` the worst job's time, shifted over from a common start.
    """

    seed: int
    jobs: int
    met: JobGroup
    cost: Beside | None = None
    gain: Beside | None = None
    chance: Beside | None = None
    slower: float = 1.0

    @property
    def advised(self):
        return self.met.verdict is not Verdict.NONE

    @property
    def figure(self):
        """The one that speaks for what is advised."""
        return self.gain if self.met.verdict is Verdict.SHIFT else self.cost

    def __str__(self):
        score = "  none" if self.met.score is None else f"{self.met.score:6.3f}"
        figures = f"{self.cost} | {self.gain} | {self.chance} | {self.slower:.3f}"
        return f"{self.seed:3d} {self.jobs} {score} | {figures} | {self.met.verdict.value}"


@pytest.fixture(autouse=True)
def few_resamplings_and_water(monkeypatch):
    """Resamplings take most of the time. Links are water here, so intervals have no room for what others are."""
    monkeypatch.setattr(phases, "RESAMPLINGS", 20)
    monkeypatch.setattr(expected, "FLOW_LEVEL_ERROR", 1.0)


def held_against(seed):
    jobs = random_jobs.mix(seed)
    observed = observe_counters(random_jobs.counters(jobs, seed), random_jobs.senders(jobs), random_jobs.CAPACITY_GBPS)
    met = advise_group(observed, {"link": list(jobs)}, random_jobs.CAPACITY_GBPS)
    if met.outlook is None:
        return Held(seed, len(jobs), met)
    fair, apart = random_jobs.measured(jobs, seed), random_jobs.measured(jobs, seed, apart=True)
    cost = Beside(met.outlook.cost_mean, float((fair / apart).mean()))
    if met.outlook.schedule is None:
        return Held(seed, len(jobs), met, cost)
    shifted = random_jobs.measured(jobs, seed, met.outlook.schedule)
    gain = Beside(met.outlook.gain_mean, float((fair / shifted).mean()))
    chance = Beside(
        met.outlook.gain_anywhere, float((random_jobs.measured(jobs, seed, anywhere=True) / shifted).mean())
    )
    return Held(seed, len(jobs), met, cost, gain, chance, float((shifted / fair).max()))


def holds(found):
    """What is promised of advice."""
    advised = [each for each in found if each.advised]
    assert len(found) - len(advised) <= MAX_WITHOUT * len(found)
    shifted = [each for each in advised if each.gain]
    for figures in (
        [each.figure for each in advised],
        [each.gain for each in shifted],
        [each.chance for each in shifted],
    ):
        assert sum(each.within for each in figures) >= MIN_WITHIN * len(figures)
    assert all(each.slower <= MAX_SLOWER for each in advised if each.met.verdict is Verdict.SHIFT)


@pytest.mark.parametrize("seed", [2, 8, 10])
def test_advice_on_a_mix_of_jobs_holds_in_simulation(seed):
    """A group to shift, one to keep apart, and one where little is to gain."""
    holds([held_against(seed)])


@pytest.mark.proof
def test_advice_on_many_mixes_of_jobs_holds_in_simulation():
    found = [held_against(seed) for seed in range(MIXES)]
    print(*found, sep="\n")
    holds(found)
