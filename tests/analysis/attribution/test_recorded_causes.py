# SPDX-License-Identifier: Apache-2.0
"""Planted causes in records of jobs: those that records show are named, all others are unexplained."""

from collections import Counter
from statistics import fmean

import pytest
import yaml

from analysis.attribution.recorded_trial import RecordSources
from roundabout.spec import Transport
from roundabout.terminal.replays import explain_records
from tests.analysis.attribution import planted_causes as planted
from tests.analysis.attribution.cluster_records import play_records

pytestmark = [pytest.mark.unit, pytest.mark.proof]

SEEDS = range(1, 6)
SHOWN = {
    "neighbor": {"job"},
    "one_path": {"colliding paths"},
    "slow_worker": {"slowest worker", "computing time"},
    "slow_job": {"computing time"},
    "slow_recovery": {"job", "transport"},
}
"""Causes that records show, of the planted trials with one. All of them must be named."""


def explained(case, seed, folder):
    """Return the delay of j1 by records of the planted trial, and of its jobs alone without a cause."""
    spec = case.spec
    late = {"j1": case.slowed / case.mean_slowed}
    play_records(spec, seed, folder / "traces", case.slowed, late)
    for name, job in spec.jobs.items():
        lone = {name: job.model_copy(update={"transport": Transport(name="dcqcn")})}
        play_records(spec.model_copy(update={"jobs": lone, "events": (), "cross_traffic": {}}), seed, folder / "alone")
    topology = spec.topology.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    (folder / "cluster.yaml").write_text(yaml.safe_dump({"schema": 1} | topology))
    sources = RecordSources(folder / "traces", str(folder / "cluster.yaml"), alone=folder / "alone", transport="dcqcn")
    return next(each for each in explain_records(sources).jobs if each.job == "j1")


@pytest.mark.parametrize("case", [*planted.CAUSES, *planted.HARMLESS], ids=lambda case: case.__name__)
def test_causes_that_records_show_are_named(case, tmp_path, capsys):
    found = [explained(case(), seed, tmp_path / str(seed)) for seed in SEEDS]
    named = Counter(part.cause for delay in found for part in delay.named)
    sums_ms = Counter[str]()
    for part in (part for delay in found for part in delay.parts):
        sums_ms[part.cause] += part.ms.value
    means_ms = {cause: total / len(SEEDS) for cause, total in sums_ms.items()}
    parts = ", ".join(f"{cause} {mean:.2f}" for cause, mean in means_ms.items() if abs(mean) >= 0.05)
    with capsys.disabled():
        delay_ms = fmean(each.delay_ms.value for each in found)
        print(f"\n{case.__name__}: delay {delay_ms:.2f} ms, of which {parts or 'none'}; named {dict(named)}")
    shown = SHOWN.get(case.__name__, set())
    assert all(named[cause] == len(SEEDS) for cause in shown)
    assert set(named) <= shown | ({"transport"} if shown else set())
