# SPDX-License-Identifier: Apache-2.0
"""Transfers of each pattern: what must hold for any bytes and groups, and what each says of a small one."""

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from roundabout.spec import ResolvedJob, SpecError, load_experiment
from roundabout.spec.patterns import PATTERNS, Transfer, all_transfers, find_feeders

pytestmark = pytest.mark.unit

SYMMETRIC = ("ring", "pairs", "all-to-all")


@st.composite
def patterned(draw: st.DrawFn) -> tuple[str, int, tuple[tuple[int, ...], ...]]:
    """A pattern, bytes, and groups of shuffled ranks."""
    pattern, size = draw(st.sampled_from(sorted(PATTERNS))), draw(st.integers(1, 10**9))
    sizes = draw(st.lists(st.integers(1, 4).map(lambda half: 2 * half) | st.integers(2, 9), min_size=1, max_size=3))
    if pattern == "pairs":
        sizes = [each + each % 2 for each in sizes]
    ranks = iter(draw(st.permutations(range(sum(sizes)))))
    return pattern, size, tuple(tuple(next(ranks) for _ in range(each)) for each in sizes)


def total(found: Iterable[Transfer], end: str) -> Counter[int]:
    sums: Counter[int] = Counter()
    for each in found:
        sums[getattr(each, end)] += each.bytes
    return sums


@given(patterned())
def test_transfers_stay_within_a_group_and_are_of_two_workers_once_in_a_channel(case) -> None:
    pattern, size, groups = case
    found = all_transfers(pattern, size, groups)
    group = {rank: number for number, ranks in enumerate(groups) for rank in ranks}
    assert all(group[each.sender] == group[each.receiver] and each.sender != each.receiver for each in found)
    assert len({(each.sender, each.receiver, each.channel) for each in found}) == len(found)
    assert all(each.bytes > 0 for each in found)


@given(patterned())
def test_in_symmetric_patterns_every_worker_sends_and_receives_the_bytes(case) -> None:
    pattern, size, groups = case
    found = all_transfers(pattern, size, groups)
    if pattern in SYMMETRIC:
        expected = {rank: size for ranks in groups for rank in ranks}
        assert total(found, "sender") == total(found, "receiver") == expected


@given(patterned())
def test_asymmetric_patterns_send_the_bytes_once_per_other_worker(case) -> None:
    pattern, size, groups = case
    found = all_transfers(pattern, size, groups)
    if pattern in (*SYMMETRIC, "tree"):
        return
    assert {each.bytes for each in found} == {size}
    assert len(found) == sum(len(ranks) - 1 for ranks in groups)
    firsts, lasts = {ranks[0] for ranks in groups}, {ranks[-1] for ranks in groups}
    everybody = {rank for ranks in groups for rank in ranks}
    senders, receivers = {each.sender for each in found}, {each.receiver for each in found}
    expected = {
        "one-to-all": (firsts, everybody - firsts),
        "all-to-one": (everybody - firsts, firsts),
        "pipeline": (everybody - lasts, everybody - firsts),
    }
    assert (senders, receivers) == expected[pattern]


@given(patterned())
def test_a_worker_that_forwards_receives_as_much_as_it_sends(case) -> None:
    found = all_transfers(*case)
    for each, feeders in zip(found, find_feeders(found), strict=True):
        assert {found[feeder].bytes for feeder in feeders} <= {each.bytes}
        assert all(found[feeder].receiver == each.sender for feeder in feeders)
        assert (each.lead_bytes is None) == (not feeders)
        assert (each.lead_bytes or 0) <= each.bytes


@given(st.integers(1, 10**9), st.integers(2, 9))
def test_a_ring_can_end_whoever_begins(size: int, workers: int) -> None:
    """Leads add up to the bytes on their way round, so that no worker waits for a byte that none may send."""
    found = all_transfers("ring", size, (tuple(range(workers)),))
    assert sum(each.lead_bytes or 0 for each in found) * 2 >= size


def test_each_pattern_of_four_workers_has_these_transfers() -> None:
    found = {pattern: {each[:3] for each in all_transfers(pattern, 100, ((0, 2, 1, 3),))} for pattern in PATTERNS}
    assert found["ring"] == {(0, 2, 100), (2, 1, 100), (1, 3, 100), (3, 0, 100)}
    assert found["pairs"] == {(0, 2, 100), (2, 0, 100), (1, 3, 100), (3, 1, 100)}
    assert found["one-to-all"] == {(0, 1, 100), (0, 2, 100), (0, 3, 100)}
    assert found["all-to-one"] == {(1, 0, 100), (2, 0, 100), (3, 0, 100)}
    assert found["pipeline"] == {(0, 2, 100), (2, 1, 100), (1, 3, 100)}
    up = {(2, 1, 50), (1, 0, 50), (3, 1, 50), (1, 2, 50), (2, 3, 50), (0, 2, 50)}
    assert found["tree"] == up | {(receiver, sender, size) for sender, receiver, size in up}
    assert {each for each in found["all-to-all"] if each[0] == 2} == {(2, 1, 34), (2, 3, 33), (2, 0, 33)}


# --- in files --------------------------------------------------------------------------------------------------------

PROFILE = """\
name: hybrid
model: none
workers: 4
phases:
  - {name: forward, compute_ms: 10, source: none}
  - {name: tensors, bytes: 1_000_000, alone_ms: 5, groups: [[0, 1], [2, 3]], source: none}
  - {name: activations, bytes: 1_000_000, alone_ms: 5, pattern: pipeline, groups: [[0, 2], [1, 3]], source: none}
  - {name: gradients, bytes: 1_000_000, alone_ms: 5, groups: [[0, 2], [1, 3]], source: none}
"""
EXPERIMENT = """\
name: hybrid
about: Four workers on two servers
topology: two-gpus
iterations: 5
transport: {name: reno}
jobs:
  j1: {profile: hybrid, workers: [s0, s0, s2, s2]}
  j2: {profile: bert-8, workers: [s1, s3], iterations: 3, arrives_ms: 100, start_offset_ms: 20, departs_ms: 900}
"""

Write = Callable[..., Path]


@pytest.fixture
def write(library: Path) -> Write:
    """Writes the experiment and its profile, each with one passage replaced."""

    def files(passage: str = "", replacement: str = "") -> Path:
        assert passage in PROFILE + EXPERIMENT
        dumbbell = (library / "topologies/small/dumbbell-2x2.yaml").read_text()
        two = dumbbell.replace("name: dumbbell-2x2", "name: two-gpus").replace("queue:", "gpus_per_host: 2\nqueue:")
        (library / "topologies" / "two-gpus.yaml").write_text(two)
        (library / "profiles" / "hybrid.yaml").write_text(PROFILE.replace(passage, replacement, 1))
        path = library / "hybrid.yaml"
        path.write_text(EXPERIMENT.replace(passage, replacement, 1))
        return path

    return files


def job(write: Write, library: Path) -> ResolvedJob:
    return load_experiment(write(), library).cells[0].spec.jobs["j1"]


def test_workers_of_one_host_send_to_each_other_without_a_link(write: Write, library: Path) -> None:
    spec = load_experiment(write(), library).cells[0].spec
    own = spec.jobs["j1"]
    assert own.workers == ("s0", "s0", "s2", "s2")
    assert own.pairs == (("s0", "s2"), ("s2", "s0"))
    _, tensors, activations, gradients = own.profile.phases
    assert spec.bytes_by_hop("j1", tensors) == {}
    there = {(hop.link.name, hop.receiver): size for hop, size in spec.bytes_by_hop("j1", activations).items()}
    assert there == {("s0", "tor0"): 2_000_000, ("L1", "tor1"): 2_000_000, ("s2", "s2"): 2_000_000}
    assert len(spec.bytes_by_hop("j1", gradients)) == 6


def test_jobs_have_a_gpu_one_after_the_other(write: Write, library: Path) -> None:
    path = write("workers: [s1, s3], iterations: 3,", "workers: [s1, s3],")
    later = "  j3: {profile: bert-8, workers: [s1, s3, s3], arrives_ms: 900}\n"
    path.write_text(path.read_text() + later)
    assert load_experiment(path, library).cells[0].spec.jobs["j3"].workers == ("s1", "s3", "s3")
    for arrives in ("arrives_ms: 899", "departs_ms: 100.5"):  # the third worker of s3 comes while j2's is there
        path.write_text(path.read_text().replace(later, later.replace("arrives_ms: 900", arrives)))
        with pytest.raises(SpecError) as caught:
            load_experiment(path, library)
        assert (caught.value.field, caught.value.found) == ("jobs.j3.workers[2]", "s3, already a worker of j2 and j3")
        later = later.replace("arrives_ms: 900", arrives)


def test_a_job_has_a_time_of_its_own(write: Write, library: Path) -> None:
    spec = load_experiment(write(), library).cells[0].spec
    assert (spec.iterations_of("j1"), spec.iterations_of("j2")) == (5, 3)
    assert (spec.jobs["j2"].begins_ms, spec.jobs["j2"].departs_ms) == (120, 900)
    alone = spec.with_one_job("j2").jobs["j2"]
    assert (alone.arrives_ms, alone.begins_ms, alone.departs_ms) == (0, 20, 800)


WRONG = [
    # passage, replacement, field, found, expected
    ("[s0, s0, s2, s2]", "[s0, s0, s0, s2]", "jobs.j1.workers[2]", "s0, already a worker of j1", "at most 2 times"),
    ("[s0, s0, s2, s2]", "[s0, s2]", "jobs.j1.workers", "2 workers", "the 4 for which hybrid is"),
    ("workers: 4\n", "", "", "a mapping", "workers where a phase has parameters or groups"),
    ("workers: 4\n", "workers: 3\n", "", "a mapping", "ranks below the number of workers, 3"),
    ("workers: 4\n", "workers: 5\n", "", "a mapping", "every worker in a group of one phase at least"),
    ("[[0, 1], [2, 3]]", "[[0, 1], [1, 3]]", "phases[1]", "a mapping", "each worker in one group at most"),
    ("[[0, 1], [2, 3]]", "[[0], [2, 3]]", "phases[1].groups[0]", "a list of 1", "at least 2"),
    ("pipeline, groups: [[0, 2], [1, 3]]", "pairs, groups: [[0, 1, 2]]", "phases[2]", "a mapping", "an even number"),
    ("pattern: pipeline", "pattern: pipelin", "phases[2].pattern", "'pipelin'", "'ring', 'tree', 'pairs'"),
    ("compute_ms: 10", "compute_ms: 10, pattern: pairs", "phases[0]", "a mapping", "pattern and groups beside bytes"),
    ("departs_ms: 900", "departs_ms: 120", "jobs.j2", "a mapping", "departs_ms after the job begins, at 120 ms"),
    (
        "iterations: 3",
        "trainer: {name: replai}",
        "jobs.j2.trainer.name",
        "'replai'",
        "one of 'ddp', 'deepspeed',",
    ),
    ("iterations: 3", "trainer: {speed: 2}", "jobs.j2.trainer.name", "nothing", "a value"),
    ("iterations: 3", "trainer: {name: replay, speed: 2}", "jobs.j2.trainer.speed", "unknown field", "one of name"),
    ("[s1, s3]", "[s0, s3]", "jobs.j2.workers[0]", "s0, already a worker of j1", "at most 2 times"),
    ("1_000_000, alone_ms: 5, pattern", "100_000_000, alone_ms: 5, pattern", "jobs.j1.profile", "320.0 Gbit/s", "43"),
]


@pytest.mark.parametrize(("passage", "replacement", "field", "found", "expected"), WRONG)
def test_a_wrong_pattern_names_field_found_and_expected(  # noqa: PLR0917
    write: Write, library: Path, passage: str, replacement: str, field: str, found: str, expected: str
) -> None:
    path = write(passage, replacement)
    with pytest.raises(SpecError) as caught:
        load_experiment(path, library)
    assert caught.value.field == field, caught.value.message
    assert found in caught.value.found
    assert expected in caught.value.expected


def test_jobs_that_share_a_host_share_its_transport(write: Write, library: Path) -> None:
    path = write("[s0, s0, s2, s2]", "[s0, s1, s2, s3]")
    assert load_experiment(path, library).cells[0].spec.jobs["j1"].workers == ("s0", "s1", "s2", "s3")
    path.write_text(path.read_text().replace("departs_ms: 900", "departs_ms: 900, transport: {name: cubic}"))
    with pytest.raises(SpecError, match=r"jobs\.j2\.transport: found another than j1's, which shares s1 with j2"):
        load_experiment(path, library)


TAKING = """\
name: taking
about: Jobs that take values from others
topology: two-gpus
iterations: 5
transport: {name: reno}
jobs:
  j1: {profile: bert-8, workers: [s0, s2]}
  j2: {profile: hybrid, workers: [s0, s1, s2, s3]}
factors:
  variant:
    alone: {one_job_at_a_time: true}
    both: {depends_on: [], jobs: {j1: {inputs: {profile: alone}}}}
"""


@pytest.mark.parametrize(
    ("passage", "replacement", "found", "expected"),
    [
        ("", "", "", ""),
        ("one_job_at_a_time: true", "", "alone (with variant both)", "a variant in which j1 runs alone"),
        ("j1: {inputs: {profile: alone}}", "j2: {inputs: {profile: alone}}", "send differently", "symmetric pattern"),
        (
            "jobs: {j1: {inputs: {profile: alone}}}",
            "cassini: {profiles: alon}",
            "'alon'",
            "a variant run at these levels",
        ),
        ("jobs: {j1: {inputs: {profile: alone}}}", "cassini: {profiles: alone}", "j2 in alone (with", "symmetric"),
        ("profile: alone", "profile: both", "both, which depends on both itself", "without a circle"),
        ("profile: alone", "profile: alon", "'alon'", "a variant run at these levels"),
        ("profile: alone", "bytes: alone", "'bytes'", "'profile' or 'start_offset_ms'"),
    ],
)
def test_an_input_needs_a_trial_that_can_give_it(  # noqa: PLR0917
    write: Write, library: Path, passage: str, replacement: str, found: str, expected: str
) -> None:
    path = write().with_name("taking.yaml")
    path.write_text(TAKING.replace(passage, replacement, 1) if passage else TAKING)
    if not passage:
        assert load_experiment(path, library).cells[1].dependencies == {("jobs", "j1", "inputs", "profile"): "alone"}
        return
    with pytest.raises(SpecError) as caught:
        load_experiment(path, library)
    assert found in caught.value.found, caught.value.message
    assert expected in caught.value.expected, caught.value.message
