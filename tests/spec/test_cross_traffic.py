# SPDX-License-Identifier: Apache-2.0
"""Cross traffic, lengths, and profiles whose bytes come of their parameters."""

from pathlib import Path

import pytest

from roundabout.plan import expected_iterations_s
from roundabout.spec import SpecError, TrialSpec, load_experiment, load_profile
from roundabout.spec.profile import ring_allreduce_bytes
from tests.spec.conftest import changed_writer

pytestmark = pytest.mark.unit

SWEEP = """\
name: sweep
about: A job beside cross traffic
topology: configuration-b
jobs: {j1: {profile: resnet50-ring3, workers: [s0, s1, s3]}}
cross_traffic: {web: {kind: consistent, from: s2, to: [s0]}}
iterations: 5
transport: {name: dcqcn}
factors: {load_gbps: [0, 12.5, 20]}
repetitions: 2
lengths: {quick: {iterations: 2, repetitions: 1, factors: {load_gbps: [0, 20]}}}
"""

OTHER = "{kind: iperf, from: s3, to: [s1]}"
SEVERAL = "web: {kind: incast, from: [s1, s2]"

# Table 3.1 (four workers) and Table 3.4 (three): bytes an iteration and the bandwidth that they need.
DEMANDS = [
    ("bert-large-ring4", 2011.0, 19.15),
    ("vgg16-ring4", 830.1, 17.95),
    ("densenet161-ring4", 172.1, 3.63),
    ("resnet50-ring4", 153.3, 7.69),
    ("bert-large-ring3", 1787.6, None),
    ("vgg16-ring3", 737.9, None),
    ("densenet161-ring3", 153.0, None),
    ("resnet50-ring3", 136.3, None),
]


@pytest.fixture
def sweep(tmp_path: Path):
    return changed_writer(tmp_path / "sweep.yaml", SWEEP)


@pytest.mark.parametrize(("name", "megabytes", "gbps"), DEMANDS)
def test_bytes_are_those_of_equation_3_1(name: str, megabytes: float, gbps: float | None) -> None:
    profile = load_profile(name)
    assert profile.comm_bytes / 1e6 == pytest.approx(megabytes, abs=0.06)
    if gbps is not None:
        assert profile.comm_bytes * 8 / profile.alone_ms / 1e6 == pytest.approx(gbps, abs=0.03)


def test_a_ring_of_two_sends_every_parameter_once() -> None:
    assert ring_allreduce_bytes(1000, 2) == 4000


def test_the_load_lies_under_each_cross_traffic(sweep) -> None:
    loads = [cell.spec.cross_traffic["web"].load_gbps for cell in load_experiment(sweep()).cells]
    assert loads == [0, 12.5, 20]
    own = load_experiment(sweep("to: [s0]}", "to: [s0], load_gbps: 3}"))
    assert {cell.spec.cross_traffic["web"].load_gbps for cell in own.cells} == {3}


def test_load_lengthens_what_is_expected(sweep) -> None:
    none, _, much = (expected_iterations_s(cell.spec) for cell in load_experiment(sweep()).cells)
    assert none == pytest.approx(5 * 0.160)
    assert much == pytest.approx(5 * (0.053 + 0.107 * 10.19 / 3.5), rel=0.01)


def test_a_length_overlays_the_whole_file(sweep) -> None:
    quick = load_experiment(sweep(), length="quick")
    assert (quick.trial_count, quick.cells[0].spec.iterations) == (2, 2)
    assert load_experiment(sweep()).trial_count == 6


@pytest.mark.parametrize(
    ("passage", "replacement", "said"),
    [
        ("from: s2", "from: s9", "found 's9', expected a host of configuration-b"),
        ("to: [s0]", "to: [s2]", "found 's2', expected other hosts than the sender, each once"),
        ("to: [s0]", "to: [s0, s0]", "expected other hosts than the sender, each once"),
        ("to: [s0]", "to: []", "expected at least 1"),
        ("from: s2", "from: [s2, s9]", "found 's9', expected a host of configuration-b"),
        ("from: s2", "from: [s2, s0]", "found 's0', expected other hosts than all senders, each once"),
        ("from: s2", "from: [s2, s2]", "found 's2', expected other hosts than all senders, each once"),
        ("from: s2", "from: []", "expected at least 1"),
        ("from: s2", "from: 3", "cross_traffic.web.from"),
        ("from: s2, to: [s0]", "from: [s1, s2], to: [s0, s3], load_gbps: 47.1", "expected at most the 47 Gbit/s"),
        ("web: {kind: consistent, from: s2", f"web-s1: {OTHER}, {SEVERAL}", "expected names that differ"),
        (
            "web: {kind: consistent, from: s2",
            f"{'w' * 62}: {{kind: incast, from: [s1, s2]",
            "at most 64 characters with senders' names",
        ),
        ("to: [s0]", "to: [s0], unit_bytes: 9", "unit_bytes with a kind that has units"),
        ("kind: consistent", "kind: incast, unit_bytes: 0", "expected at least 1"),
        ("kind: consistent", "kind: kv-cache, group: x", "group with a kind that sends at the same instants"),
        ("kind: consistent", "kind: constant", "'burst', 'iperf', 'checkpoint', 'incast' or 'kv-cache'"),
        ("to: [s0]", "to: [s0], volumes: even", "found 'even', expected 'drawn' or 'exact'"),
        ("to: [s0]", "to: [s0], sizes_between: nothing", "found 'nothing', expected 'steps' or 'linear'"),
        ("to: [s0]", "to: [s0], connections: none", "found 'none', expected 'pooled' or 'fresh'"),
        ("iterations: 5", "tcp: {enc: false}\niterations: 5", "found the unknown field 'enc'"),
        ("0, 12.5, 20", "0, 24, 20", "found 24 Gbit/s (with load_gbps 24), expected at most the 23.5 Gbit/s"),
        ("factors: {load_gbps: [0, 12.5, 20]}", "seed: 1", "load_gbps"),
        ("workers: [s0, s1, s3]", "workers: [s0, s1]", "found 2 workers"),
        ("lengths: {quick", "lengths: {short", "found 'short'"),
        ("quick: {iterations", "quick: {name: x, iterations", "the field 'name'"),
    ],
)
def test_a_wrong_file_gets_one_message(sweep, passage: str, replacement: str, said: str) -> None:
    with pytest.raises(SpecError) as error:
        load_experiment(sweep(passage, replacement))
    assert said in str(error.value)
    assert "sweep.yaml" in str(error.value)


def test_an_unknown_length_is_answered_with_those_there_are(sweep) -> None:
    with pytest.raises(SpecError, match="found no length 'quick', expected neither --quick nor --full"):
        load_experiment("unfair-vgg19", length="quick")
    with pytest.raises(SpecError, match="no length 'full', expected one of quick"):
        load_experiment(sweep(), length="full")


def test_senders_are_cross_traffic_each(sweep) -> None:
    cells = load_experiment(sweep("kind: consistent, from: s2", "kind: incast, from: [s2, s3]")).cells
    for cell in cells:
        traffic = cell.spec.cross_traffic
        assert [(name, each.sender, each.group) for name, each in traffic.items()] == [
            ("web-s2", "s2", "web"),
            ("web-s3", "s3", "web"),
        ]
        assert cell.spec.cross_traffic_gbps == cell.levels["load_gbps"]
        stored = cell.spec.model_dump(mode="json")
        assert stored["cross_traffic"]["web-s2"]["from"] == "s2"
        assert TrialSpec.model_validate(stored) == cell.spec


def test_a_sender_alone_keeps_its_name_and_its_key(sweep) -> None:
    one, listed = (load_experiment(sweep("from: s2", sender)).cells for sender in ("from: s2", "from: [s2]"))
    assert [cell.spec for cell in one] == [cell.spec for cell in listed]
    assert not {"unit_bytes", "group"} & one[0].spec.model_dump(mode="json")["cross_traffic"]["web"].keys()


def test_a_traffic_class_is_stored_and_in_the_key_only_if_given(sweep) -> None:
    plain = load_experiment(sweep()).cells[0].spec
    assert "traffic_class" not in plain.model_dump(mode="json")["cross_traffic"]["web"]
    apart = load_experiment(sweep("kind: consistent", "kind: consistent, traffic_class: own")).cells[0].spec
    stored = apart.model_dump(mode="json")
    assert stored["cross_traffic"]["web"]["traffic_class"] == "own"
    assert TrialSpec.model_validate(stored) == apart


VARIANTS = ("iperf", "iperf-jumbo", "consistent", "consistent-jumbo", "burst", "burst-jumbo")


@pytest.mark.parametrize("name", ["websearch-bert", "cross-traffic-all"])
@pytest.mark.parametrize("length", [None, "quick", "full"])
def test_the_shipped_sweeps_are_whole(name: str, length: str | None) -> None:
    experiment = load_experiment(name, length=length)
    assert {cell.spec.topology.name for cell in experiment.cells} <= {"configuration-a", "configuration-b"}
    assert max(cell.levels["load_gbps"] for cell in experiment.cells) >= (21.7 if length == "full" else 18)


def test_jumbo_frames_go_as_far_as_salamy_did() -> None:
    cells = load_experiment("jumbo-frames").cells
    most = {variant: max(cell.levels["load_gbps"] for cell in cells if cell.variant == variant) for variant in VARIANTS}
    assert most == {**dict.fromkeys(VARIANTS, 21.7), "burst": 23, "burst-jumbo": 24.7}
    assert {cell.spec.topology.mtu_bytes for cell in cells if cell.variant.endswith("jumbo")} == {9000}
