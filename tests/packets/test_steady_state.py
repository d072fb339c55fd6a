# SPDX-License-Identifier: Apache-2.0
"""Steady states: which iterations are skipped, and that skipping keeps within its bound."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, strategies as st

from analysis.reading.fidelity import fidelity_of
from roundabout import build_experiment, open_run
from roundabout.cli.main import main
from roundabout.models.packets import PS_PER_MS, Fabric, play_trial
from roundabout.models.packets.steady_state import (
    Counts,
    Progress,
    Skipped,
    find_groups,
    find_steady_state,
    refusal,
    repeat_iterations,
)
from roundabout.models.packets.structures import RECORD
from roundabout.spec import TrialSpec, load_experiment
from tests.packets.small_runs import FILE, rows, run

pytestmark = pytest.mark.unit

ITERATIONS = 60
PLAYED = 24
LENGTH_MS = 100.0
WITHIN = 0.01

Series = npt.NDArray[Any]


def trial(variant: str = "fair", iterations: int = ITERATIONS, **fields: Any) -> TrialSpec:
    """Return a trial of the small jobs, without jitter, that may be shortened."""
    jobs = {name: {**job, "jitter": 0} for name, job in FILE["jobs"].items()}
    document = {**FILE, "jobs": jobs, "iterations": iterations, "skip_within": WITHIN, **fields}
    cell = next(each for each in build_experiment(document).cells if each.variant == variant)
    return cell.spec.with_one_job("j1") if variant == "alone" else cell.spec


def progress(lengths_ms: Series, start_ms: float = 0.0, counts: Mapping[str, list[int]] | None = None) -> Progress:
    """Return the progress of a worker whose iterations last so long, and send in their second half."""
    lengths_ps = np.round(lengths_ms * PS_PER_MS).astype(np.int64)
    records = np.zeros((1, len(lengths_ms)), RECORD)
    records["end_ps"] = round(start_ms * PS_PER_MS) + np.cumsum(lengths_ps)
    records["start_ps"] = records["end_ps"] - lengths_ps
    records["compute_end_ps"] = records["end_ps"] - lengths_ps // 2
    packets = [1000 * (place + 1) for place in range(len(lengths_ms))]
    columns = {"packets": packets, "resent": [0] * len(packets), "marked": [0] * len(packets)} | dict(counts or {})
    return Progress(
        records, [Counts(**dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]
    )


@cache
def _alone() -> TrialSpec:
    return trial("alone")


@cache
def _both() -> TrialSpec:
    return trial()


def skip(lengths_ms: Series, played: int = PLAYED) -> Skipped | None:
    """Return what is skipped of a job alone whose iterations last so long, after the first `played` ones."""
    found = find_steady_state(_alone(), ["j1"], {"j1": progress(lengths_ms[:played])})
    return found["j1"] if found else None


def errors_ms(lengths_ms: Series, skipped: Skipped) -> dict[str, float]:
    """Return by how much skipping changes the mean and the median of all iterations."""
    short = repeat_iterations(progress(lengths_ms[: skipped.played]).records, skipped)
    ours_ms = (short["end_ps"] - short["start_ps"])[0] / PS_PER_MS
    assert len(ours_ms) == len(lengths_ms)
    return {name: abs(of(ours_ms) - of(lengths_ms)) for name, of in (("mean", np.mean), ("median", np.median))}


@given(st.lists(st.floats(50, 200), min_size=1, max_size=4), st.integers(0, 8))
def test_a_period_is_found_whatever_came_before_it(pattern: list[float], others: int) -> None:
    repeated = np.resize(pattern, ITERATIONS - others)
    lengths_ms = np.concatenate([np.linspace(300, 310, others), repeated])
    skipped = skip(lengths_ms)
    assert skipped
    assert max(errors_ms(lengths_ms, skipped).values()) <= skipped.bound_ms


@given(st.floats(-1, 1), st.integers(4, ITERATIONS - 1))
def test_a_drift_is_refused_or_within_the_bound(slope_ms: float, played: int) -> None:
    lengths_ms = LENGTH_MS + slope_ms * np.arange(ITERATIONS)
    skipped = skip(lengths_ms, played)
    if abs(slope_ms) * (ITERATIONS - played) > 3 * WITHIN * lengths_ms.mean():
        assert not skipped
    if skipped:
        assert max(errors_ms(lengths_ms, skipped).values()) <= skipped.bound_ms + 1e-6


@given(st.floats(0.5, 0.99), st.floats(-30, 30), st.integers(4, ITERATIONS - 1))
def test_a_slow_convergence_is_refused_or_within_the_bound(rate: float, start_ms: float, played: int) -> None:
    lengths_ms = LENGTH_MS + start_ms * rate ** np.arange(ITERATIONS)
    if skipped := skip(lengths_ms, played):
        assert max(errors_ms(lengths_ms, skipped).values()) <= skipped.bound_ms + 1e-6


@pytest.mark.parametrize("deviation_ms", [0.01, 0.2])
def test_noise_stays_within_the_bound_in_99_of_100_series(deviation_ms: float) -> None:
    series = LENGTH_MS + deviation_ms * np.random.default_rng(1).standard_normal((100, ITERATIONS))
    found = [(each, next(filter(None, (skip(each, played) for played in range(1, ITERATIONS, 2))))) for each in series]
    kept = [max(errors_ms(each, skipped).values()) <= skipped.bound_ms for each, skipped in found if skipped]
    assert sum(kept) >= 99


@given(st.integers(0, 2**32), st.floats(5, 50))
def test_two_modes_by_chance_are_refused(seed: int, apart_ms: float) -> None:
    modes = np.random.default_rng(seed).integers(0, 2, ITERATIONS)
    repeats = [np.array_equal(modes[PLAYED // 2 + p : PLAYED], modes[PLAYED // 2 : PLAYED - p]) for p in range(1, 5)]
    if not any(repeats):
        assert not skip(LENGTH_MS + apart_ms * modes)


@given(st.floats(0.001, 5).flatmap(lambda more: st.tuples(st.just(more), st.floats(0, 100))))
def test_jobs_of_slightly_different_periods_are_played_to_their_end(case: tuple[float, float]) -> None:
    more_ms, offset_ms = case
    lengths = {"j1": np.full(PLAYED, LENGTH_MS), "j2": np.full(PLAYED, LENGTH_MS + more_ms)}
    given = {"j1": progress(lengths["j1"]), "j2": progress(lengths["j2"], offset_ms)}
    found = find_steady_state(_both(), ["j1", "j2"], given)
    moved_ms = more_ms * (ITERATIONS - PLAYED) / 2  # on average
    if found:
        assert WITHIN * LENGTH_MS * 1.1 > found["j1"].bound_ms >= moved_ms * (1 - 1e-6)
    else:
        assert moved_ms > 0.1 * WITHIN * LENGTH_MS


def test_packets_that_are_sent_again_and_changing_marks_are_no_steady_state() -> None:
    spec, lengths_ms = trial("alone"), np.full(PLAYED, LENGTH_MS)
    marked = [100 * (place + 1) for place in range(PLAYED)]
    for counts, is_steady in (
        ({}, True),
        ({"marked": marked}, True),
        ({"marked": [0] * (PLAYED - 1) + [100]}, False),
        ({"resent": [0] * (PLAYED - 1) + [1]}, False),
        ({"resent": [7] * PLAYED}, True),
    ):
        assert bool(find_steady_state(spec, ["j1"], {"j1": progress(lengths_ms, counts=counts)})) == is_steady


def test_mltcp_is_steady_only_where_jobs_send_in_turns() -> None:
    lengths_ms = np.full(PLAYED, LENGTH_MS)
    for name, offset_ms, is_steady in (
        ("dctcp", 0, True),
        ("mltcp_dctcp", 0, False),
        ("mltcp_dctcp", 50.5, False),
        ("mltcp_dctcp", 50, True),
    ):
        spec = trial(transport={"name": name}, factors={"variant": {"fair": {}}})
        given = {"j1": progress(lengths_ms), "j2": progress(lengths_ms, offset_ms)}
        assert bool(find_steady_state(spec, ["j1", "j2"], given)) == is_steady, (name, offset_ms)


def test_jobs_that_share_a_link_are_a_group() -> None:
    cells = {str(cell.levels["variant"]): cell.spec for cell in load_experiment("pod-collisions").cells}
    assert find_groups(trial()) == [("j1", "j2")]
    for variant in ("ecmp", "rail"):  # on rails a phase of 8 bytes crosses links of other jobs
        assert find_groups(cells[variant]) == [("j1",), ("j2",), ("j3",), ("j4",)]
    assert find_groups(cells["units"]) == [("j1", "j2", "j3", "j4")]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, None),
        ({"jobs": FILE["jobs"]}, "jobs.j1.jitter: found 0.005"),
        ({"jobs": {"j2": {**FILE["jobs"]["j2"], "jitter": 0, "departs_ms": 500},
                   "j1": {**FILE["jobs"]["j1"], "jitter": 0}}}, "jobs.j2.departs_ms"),
        ({"jobs": {"j2": {**FILE["jobs"]["j2"], "jitter": 0, "iterations": 7},
                   "j1": {**FILE["jobs"]["j1"], "jitter": 0}}}, "iterations: found 7, 60"),
        ({"cross_traffic": {"load": {"kind": "iperf", "from": "s0", "to": ["s2"], "load_gbps": 1,
                                     "transport": {"name": "cubic"}}}}, "cross_traffic"),
    ],
)  # fmt: skip
def test_a_trial_with_random_or_unequal_parts_is_refused(fields: dict[str, Any], reason: str | None) -> None:
    found = refusal(trial(**fields))
    assert (found or "").startswith(reason or "")
    assert bool(found) == bool(reason)


@pytest.mark.parametrize("variant", ["alone", "unfair"])
def test_a_shortened_trial_is_the_begin_of_the_whole_one(variant: str) -> None:
    spec = trial(variant, 30)
    whole, short = (play_trial(each, 1, Fabric()) for each in (spec.model_copy(update={"skip_within": None}), spec))
    assert not whole.skipped
    assert short.skipped
    assert short.packet_hops < 0.8 * whole.packet_hops
    for name, skipped in short.skipped.items():
        ours, theirs = short.iterations[name], whole.iterations[name]
        assert ours.shape == theirs.shape
        assert (ours[:, : skipped.played] == theirs[:, : skipped.played]).all()
        lengths = [(each["end_ps"] - each["start_ps"]) / PS_PER_MS for each in (ours, theirs)]
        assert abs(lengths[0].mean(axis=1) - lengths[1].mean(axis=1)).max() <= skipped.bound_ms
        assert abs(np.median(lengths[0], axis=1) - np.median(lengths[1], axis=1)).max() <= skipped.bound_ms
    samples = len(short.samples)
    assert samples < len(whole.samples)
    assert (short.samples.ports["tx_bytes"] == whole.samples.ports["tx_bytes"][:samples]).all()


def test_exact_plays_every_iteration_of_an_experiment_that_would_skip(tmp_path: Path) -> None:
    jobs = {"j1": {**FILE["jobs"]["j1"], "jitter": 0}}
    file = tmp_path / "small.yaml"
    file.write_text(json.dumps({**FILE, "jobs": jobs, "skip_within": WITHIN, "factors": {}, "iterations": 5}))
    for options, is_exact in (([], False), (["--exact"], True)):
        runs = tmp_path / f"runs{len(options)}"
        assert main(["run", str(file), "--testbed", "packets", "--runs", str(runs), *options]) == 0
        [record] = open_run("small", runs).trials()
        assert ("skipped" not in record) == is_exact


def test_tables_and_reports_state_what_was_skipped(tmp_path: Path) -> None:
    jobs = {"j1": {**FILE["jobs"]["j1"], "jitter": 0}}
    variants = {"steady": {}, "jitter": {"jobs": {"j1": {"jitter": 0.01}}}}
    found = run(
        {**FILE, "jobs": jobs, "iterations": 12, "skip_within": WITHIN, "factors": {"variant": variants}}, tmp_path
    )
    records = {record["variant"]: record["skipped"] for record in found.trials()}
    reason = "jobs.j1.jitter: found 0.01, expected 0: computing times are drawn at random"
    assert records["jitter"] == {"within": WITHIN, "refused": reason, "jobs": {}}
    job = records["steady"]["jobs"]["j1"]
    assert job["played"] + job["skipped"] == 12
    own = sorted(rows(found, "iterations", "steady", job="j1", rank=0), key=lambda row: row["iteration"])
    assert [row["repeats"] for row in own[: job["played"]]] == [None] * job["played"]
    first, again = own[job["played"] - job["window"]], own[job["played"]]
    assert again["repeats"] == first["iteration"]
    assert again["iteration_ms"] == pytest.approx(first["iteration_ms"], abs=1e-5)
    assert again["start_ns"] == own[job["played"] - 1]["comm_end_ns"]
    line = fidelity_of(found).cannot[-1]
    assert "in 1 of 2 trials jobs came to a steady state" in line
    assert "jobs.j1.jitter" in line
    assert all(row["repeats"] is None for row in rows(found, "iterations", "jitter"))
