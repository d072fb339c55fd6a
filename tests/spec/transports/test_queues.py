# SPDX-License-Identifier: Apache-2.0
"""The queues that transports are meant for, and which of a port's queues a job's packets wait in."""

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from roundabout.spec import SpecError, TrialSpec, load_experiment, load_topology
from roundabout.spec.transports import registry
from roundabout.spec.transports.queues import drop_tail_bytes, step_bytes

pytestmark = pytest.mark.unit

TWO = """
name: two
about: two
topology: dumbbell-2x2
iterations: 2
transport: {name: %s}
jobs:
  j1: {profile: vgg19-fig1, workers: [s0, s2]}
  j2: {profile: vgg19-fig1, workers: [s1, s3]}
"""


def spec_of(folder: Path, transport: str, more: str = "") -> TrialSpec:
    path = folder / "two.yaml"
    path.write_text(TWO % transport + more)
    return load_experiment(path).cells[0].spec


@pytest.mark.parametrize("base", ["reno", "cubic", "dctcp", "dcqcn"])
def test_a_variation_of_a_transport_has_its_intended_queue(tmp_path: Path, base: str) -> None:
    meant = {"reno": "drop-tail", "cubic": "drop-tail", "dctcp": "step", "dcqcn": "thresholds"}[base]
    for name in (base, f"mltcp_{base}"):
        assert name in registry.transport_names()
        assert spec_of(tmp_path, name, "queue: auto\n").queue == meant


def test_by_default_ports_are_as_they_were_and_keys_say_nothing_of_it(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, "cubic")
    stored = spec.model_dump(mode="json")
    assert spec.queue == "thresholds"
    assert not {"queue", "priority_queues", "dwrr", "red_weight", "skip_within"} & stored.keys()
    assert not spec.switch_features
    assert all("priority" not in job for job in stored["jobs"].values())
    assert TrialSpec.model_validate(stored) == spec


def test_queue_and_priorities_are_stored_in_the_trial(tmp_path: Path) -> None:
    more = "queue: drop-tail\npriority_queues: 3\nfactors: {jobs.j1.priority: [5]}\n"
    spec = spec_of(tmp_path, "reno", more)
    stored = spec.model_dump(mode="json")
    assert (stored["queue"], stored["priority_queues"], stored["jobs"]["j1"]["priority"]) == ("drop-tail", 3, 5)
    assert TrialSpec.model_validate(stored) == spec


def test_weights_and_red_are_stored_in_the_trial(tmp_path: Path) -> None:
    more = "queue: red\nred_weight: 0.01\ndwrr: {weights: [1, 3]}\nfactors: {jobs.j1.priority: [5]}\n"
    spec = spec_of(tmp_path, "dcqcn", more)
    stored = spec.model_dump(mode="json")
    assert (stored["queue"], stored["red_weight"]) == ("red", 0.01)
    assert stored["dwrr"] == {"weights": [1, 3], "quantum_bytes": None}
    assert TrialSpec.model_validate(stored) == spec
    assert set(spec.switch_features) == {"queue", "dwrr"}


@pytest.mark.parametrize(
    ("transport", "more", "message"),
    [
        ("reno", "queue: deep\n", r"queue: found 'deep'"),
        (
            "reno",
            "queue: auto\nfactors: {jobs.j2.transport.name: [dctcp]}\n",
            r"queue: found transports that declare different queues: reno of j1 for drop-tail, dctcp of j2 for step",
        ),
        (
            "reno, ecn: {Kmin_bytes: 1, Kmax_bytes: 2, Pmax: 1}",
            "queue: auto\n",
            r"queue: found drop-tail, beside the `ecn` of j1's transport, expected thresholds, step or red",
        ),
        ("reno", "queue: step\nred_weight: 0.01\n", r"red_weight: found 0.01 beside a queue of kind step"),
        ("reno", "queue: red\nred_weight: 0\n", r"red_weight: found 0"),
        (
            "reno",
            "dwrr: {weights: [1, 2, 3]}\nfactors: {jobs.j1.priority: [5]}\n",
            r"dwrr.weights: found weights of 3 queues.*, expected at most 2, the queues that the jobs' priorities use",
        ),
        ("reno", "dwrr: {weights: [1]}\n", r"dwrr.weights: found a list of 1"),
        ("reno", "dwrr: {weights: [1, 0]}\n", r"dwrr.weights\[1\]: found 0"),
        ("reno", "priority_queues: 8\n", r"priority_queues: found 8, expected at most 7"),
        ("reno", "factors: {jobs.j1.priority: [0]}\n", r"jobs.j1.priority\[0\]: found 0, expected at least 1"),
    ],
)
def test_an_impossible_queue_or_priority_is_refused(tmp_path: Path, transport: str, more: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        spec_of(tmp_path, transport, more)


@given(
    priorities=st.lists(st.none() | st.integers(1, 63), min_size=2, max_size=12),
    queues=st.integers(2, 7),
)
def test_priorities_beyond_the_number_of_queues_share_the_last(priorities: list[int | None], queues: int) -> None:
    base = load_experiment("unfair-vgg19").cells[0].spec
    job = base.jobs["j1"]
    jobs = {f"j{i}": job.model_copy(update={"priority": each}) for i, each in enumerate(priorities)}
    found = base.model_copy(update={"jobs": jobs, "priority_queues": queues}).queue_of_priority
    ranked = sorted(found)
    assert ranked == sorted({each for each in priorities if each})
    users = [found.get(each or 0, 0) for each in sorted({each or 0 for each in priorities})]
    assert users == sorted(users)
    top = min(len(users), queues) - 1
    assert sorted(set(users)) == list(range(top + 1))  # no queue is left out
    assert users[-top:] == list(range(1, top + 1)) if top else set(users) == {0}


def test_drop_tail_is_a_millisecond_and_a_step_dctcps_k() -> None:
    assert drop_tail_bytes(43) == 5_375_000
    assert step_bytes(10, 1500) == 65 * 1500
    assert step_bytes(1, 1500) == 20 * 1500
    assert step_bytes(50, 1500, bytes_scale=100) == 20 * 1500  # packets are no shorter where bytes are scaled


def test_only_a_lossy_fabric_or_drop_tail_loses(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, "reno")
    assert not spec.may_drop
    assert spec.model_copy(update={"queue": "drop-tail"}).may_drop
    lossy = load_topology("configuration-b-drops-2500kb")
    assert spec.model_copy(update={"topology": lossy}).may_drop
