# SPDX-License-Identifier: Apache-2.0
"""Periods and demands recovered from counters that were generated from known schedules."""

import itertools
import re

import numpy as np
import pytest

from analysis.advice.observed_jobs import observe_counters
from analysis.statistics import phases
from tests.analysis.advice.scheduled_counters import Schedule

pytestmark = [pytest.mark.unit, pytest.mark.usefixtures("few_resamplings")]

GBPS = 50.0


def observe(schedule, hosts=(0.0, 0.0), **how):
    """Return the observation of a job whose hosts' clocks are ahead by `hosts`, in ms."""
    counters = {
        f"n{place}": schedule.counter(clock_offset_ms=offset_ms, **how) for place, offset_ms in enumerate(hosts, 1)
    }
    (found,) = observe_counters(counters, {"j1": tuple(counters)}, GBPS)
    return found


def errors(schedule, found):
    """Return the errors of period, sending time and rate, as shares."""
    (phase,) = [each for each in found.found.phases if each.sends]
    figures = (found.found.period_ms.value, phase.duration_ms.value, phase.gbps.value)
    played = (schedule.period_ms, schedule.period_ms * schedule.duty, schedule.gbps)
    return [abs(figure / truth - 1) for figure, truth in zip(figures, played, strict=True)]


@pytest.mark.parametrize(
    ("schedule", "how"),
    [
        (Schedule(), {}),
        (Schedule(period_ms=300, duty=0.2, gbps=40), {"lasts_s": 12}),
        (Schedule(jitter=0.01), {"scrape_jitter_ms": 2}),
        (Schedule(800, 0.375, 30), {"rounded_bytes": 10**7}),
        (Schedule(), {"noise": 0.5}),
        (Schedule(jitter=0.005), {"noise": 0.5, "scrape_jitter_ms": 2, "hosts": (0.0, 300.0)}),
    ],
    ids=str,
)
def test_a_known_schedule_is_recovered(schedule, how):
    period, sending, rate = errors(schedule, observe(schedule, **{"lasts_s": 15, **how}))
    assert period < 0.002 + schedule.jitter / 2
    assert sending < 0.015
    assert rate < 0.015


@pytest.mark.parametrize("offset_ms", [300.0, -300.0, 45.0, 870.0 - 200.0])
def test_hosts_whose_clocks_differ_are_named_and_aligned(offset_ms):
    found = observe(Schedule(), hosts=(0.0, offset_ms), lasts_s=15)
    nearest_ms = (offset_ms + 435) % 870 - 435
    order = "after" if nearest_ms > 0 else "before"
    (note,) = found.notes
    apart, found_ms = re.match(r"j1: n2 (sends (\d+) ms \w+ n1), give or take whole periods", note).groups()
    assert order in apart
    assert int(found_ms) == pytest.approx(abs(nearest_ms), abs=5)
    assert max(errors(Schedule(), found)) < 0.002


@pytest.mark.parametrize("offset_ms", [0.0, 6.0])
def test_hosts_apart_by_less_than_two_samples_are_not_named(offset_ms):
    assert observe(Schedule(jitter=0.01), hosts=(0.0, offset_ms), lasts_s=15, scrape_jitter_ms=2).notes == ()


@pytest.mark.parametrize(
    ("period_ms", "step_ms"), [(1200, 1000), (870, 1000), (600, 500), (1250, 1000), (300, 250), (700, 100 * 7 / 5)]
)
def test_aliased_scrapes_are_refused(period_ms, step_ms):
    found = observe(Schedule(period_ms, 0.5), step_ms=step_ms, lasts_s=0.2 * step_ms)
    assert not found.found
    assert "shorter iterations look the same" in found.reason


@pytest.mark.parametrize("samples", [2, 3, 4, 6])
def test_iterations_of_too_few_samples_are_refused(samples):
    found = observe(Schedule(600, 0.4), step_ms=600 / samples, lasts_s=60)
    assert not found.found
    assert f"found iterations of about {samples:.1f} samples, expected 7 or more" in found.reason


def test_samples_that_are_far_apart_are_named():
    found = observe(Schedule(12_000, 0.5), step_ms=1000, lasts_s=300, scrape_jitter_ms=3)
    assert found.notes == ("j1: samples are 1000 ms apart: iterations shorter than 7000 ms would show as longer ones",)
    assert observe(Schedule(), lasts_s=15).notes == ()


def test_hosts_that_do_not_send_alike_get_no_advice():
    one, other = Schedule(800, 0.3), Schedule(800, 0.3)
    generator = np.random.default_rng(1)
    counters = {"n1": one.counter(lasts_s=15), "n2": other.counter(lasts_s=15)}
    random = np.concatenate([[0], np.cumsum(generator.integers(0, 10**7, len(counters["n2"].at_ns) - 1))])
    counters["n2"] = type(counters["n2"])(counters["n2"].at_ns, 1e12 + random)
    (found,) = observe_counters(counters, {"j1": ("n1", "n2")}, GBPS)
    assert not found.found
    assert "do not send alike" in found.reason


def observe_unlike_hosts(seed):
    """Return the observation of two unlike hosts out of phase, and their counters' fastest rate."""
    generator = np.random.default_rng(seed)
    schedules = [Schedule(600, duty, gbps) for duty, gbps in zip(generator.uniform(0.1, 0.6, 2), (20, 30), strict=True)]
    counters = {
        f"n{place}": schedule.counter(lasts_s=7, clock_offset_ms=float(generator.uniform(0, 600)), noise=0.3)
        for place, schedule in enumerate(schedules)
    }
    (found,) = observe_counters(counters, {"j1": tuple(counters)}, GBPS)
    return found, max((np.diff(each.bytes) / np.diff(each.at_ns)).max() for each in counters.values()) * 8


def test_no_demand_exceeds_what_a_host_sent_between_two_samples():
    observed = [observe_unlike_hosts(seed) for seed in range(2)]
    assert any(found.found for found, _ in observed)
    for found, fastest in observed:
        for phase in found.found.phases if found.found else ():
            rate = phase.gbps
            assert rate.value <= 1.1 * fastest
            assert max(rate.high - rate.value, rate.value - rate.low) <= rate.value or not phase.sends


def test_noise_does_not_multiply_fits(monkeypatch):
    """A fit for each vertex that noise left, for each resampling, took 131 s of CPU on rounded counters."""
    calls = []
    fit = phases.fit_line
    monkeypatch.setattr(phases, "fit_line", lambda *each: calls.append(1) or fit(*each))
    monkeypatch.setattr(phases, "RESAMPLINGS", 100)
    assert observe(Schedule(800, 0.375, 30), rounded_bytes=10**7, lasts_s=15).found
    assert 0 < len(calls) < 60


def print_errors():
    """Print the errors over a grid of schedules and disturbances, in percent."""
    grid = itertools.product((300, 870, 2000), (0.2, 0.5), (5, 25), ("clean", "rounded", "noise", "jitter", "offset"))
    hows = {
        "clean": {},
        "rounded": {"rounded_bytes": 10**7},
        "noise": {"noise": 0.5},
        "jitter": {"scrape_jitter_ms": 3},
        "offset": {"hosts": (0.0, 90.0)},
    }
    for period_ms, duty, gbps, kind in grid:
        schedule = Schedule(period_ms, duty, gbps, 0.005 if kind == "jitter" else 0)
        found = observe(schedule, lasts_s=40 * period_ms / 1e3, **hows[kind])
        try:
            figures = " ".join(f"{100 * each:8.3f}" for each in errors(schedule, found))
        except (AttributeError, ValueError):
            figures = found.reason or f"{len(found.found.phases)} phases"
        print(f"{period_ms:5d} {duty:4.1f} {gbps:4d} {kind:8} {figures}")


if __name__ == "__main__":
    print_errors()
