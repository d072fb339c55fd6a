# SPDX-License-Identifier: Apache-2.0
"""The shipped profiles, and what a profile must say."""

from pathlib import Path

import pytest

from roundabout.spec import EXPERIMENTS, Profile, SpecError, load_experiment, load_profile
from roundabout.spec.profile import ProfileScaling

pytestmark = pytest.mark.unit

NAMES = sorted(path.stem for path in (EXPERIMENTS / "profiles").rglob("*.yaml"))
AT_400_GBPS = {path.stem for each in ("pods", "traces") for path in (EXPERIMENTS / "profiles" / each).glob("*.yaml")}

# Iteration alone, ms, as the papers bound it: printed (Figure 3), or that of a compatible group in Table 1.
PRINTED_MS = {
    "vgg16-fig3": 255,
    "wideresnet101-800": 273,
    "vgg16-1400": 274,
    "vgg19-1400": 329,
    "vgg16-1700": 329,
    "resnet50-1600": 165,
    "vgg19-fig1": 293,
}
PRINTED_MS |= {
    f"{name}-v2": PRINTED_MS[name]
    for name in ("wideresnet101-800", "vgg16-1400", "vgg19-1400", "vgg16-1700", "resnet50-1600")
}
# Pairs that the papers call compatible, and pairs that they do not.
COMPATIBLE = [
    ("dlrm-2000", "dlrm-2000"),
    ("wideresnet101-800", "vgg16-1400"),
    ("vgg19-1400", "vgg16-1700"),
    ("vgg19-fig1", "vgg19-fig1"),
]
INCOMPATIBLE = [("bert-8", "vgg19-1200"), ("vgg19-1024", "vgg16-1200"), ("roberta-12", "roberta-12")]


def test_every_model_and_batch_of_the_papers_is_there() -> None:
    assert {
        "bert-8", "vgg19-1200", "dlrm-2000", "vgg19-1400", "wideresnet101-800", "vgg16-1400", "vgg16-1700",
        "resnet50-1600", "vgg19-1024", "vgg16-1200", "roberta-12", "vgg16-fig3", "vgg19-fig1",
    } <= set(NAMES)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_every_number_has_its_origin(name: str) -> None:
    profile = load_profile(name)
    assert profile.source
    for phase in profile.phases:
        assert phase.source or "Effect: " in (phase.guess or ""), f"{phase.name} does not state the effect of its guess"
    assert max(phase.demand_gbps for phase in profile.phases) <= (391 if name in AT_400_GBPS else 43)


@pytest.mark.parametrize(("name", "alone_ms"), PRINTED_MS.items())
def test_iterations_last_as_long_as_the_papers_say(name: str, alone_ms: float) -> None:
    assert load_profile(name).alone_ms == pytest.approx(alone_ms, abs=1)


@pytest.mark.parametrize("pair", COMPATIBLE)
def test_compatible_jobs_fit_beside_each_other(pair: tuple[str, str]) -> None:
    one, other = map(load_profile, pair)
    assert one.comm_ms + other.comm_ms <= min(one.alone_ms, other.alone_ms)


@pytest.mark.parametrize("pair", INCOMPATIBLE)
def test_incompatible_jobs_do_not(pair: tuple[str, str]) -> None:
    one, other = map(load_profile, pair)
    assert one.comm_ms + other.comm_ms > min(one.alone_ms, other.alone_ms)


def test_the_shapes_that_figure_4_1_of_the_interleaving_thesis_prints() -> None:
    ups = {
        name: [phase for phase in load_profile(name).phases if phase.bytes]
        for name in ("gpt1-data", "gpt2-pipeline", "gpt3-tensor", "gpt3-hybrid")
    }
    assert [len(phases) for phases in ups.values()] == [1, 4, 2, 6]
    *peaks, heavy = ups["gpt2-pipeline"]
    assert all(peak.pattern == "pipeline" and peak.demand_gbps < heavy.demand_gbps / 2 for peak in peaks)
    assert [phase.demand_gbps for phase in ups["gpt3-tensor"]] == [25, 25]
    hybrid = load_profile("gpt3-hybrid")
    of_last_server = [
        [each for each in phase.transfers(8) if 7 in (each.sender, each.receiver)] for phase in hybrid.phases
    ]
    assert {len(each) for each in of_last_server} == {0, 1, 2}  # a ring of two goes both ways, a pipeline one
    assert {load_profile(name).workers for name in ("gpt1-data", "gpt3-hybrid")} == {4, 8}


def test_the_profile_of_figure_1() -> None:
    profile = load_profile("vgg19-fig1")
    assert (profile.compute_ms, profile.comm_bytes, profile.comm_ms) == (150, 574_680_000, 143)
    assert profile.phases[1].demand_gbps == pytest.approx(32.15, abs=0.01)


@pytest.mark.parametrize(
    ("phase", "said"),
    [
        ("{name: a, compute_ms: 1}", "found neither source nor guess, expected source .* or guess"),
        ("{name: a, compute_ms: 1, source: x, guess: y}", "found both source and guess, expected source .* or guess"),
        ("{name: a, compute_ms: 1, bytes: 1, alone_ms: 1, source: x}", "either compute_ms, or bytes and alone_ms"),
        ("{name: a, bytes: 1, source: x}", "either compute_ms, or bytes and alone_ms"),
        ("{name: a, compute_ms: 0, source: x}", "phases that take time"),
        ("{name: a, compute_ms: .inf, source: x}", r"compute_ms: found '.inf', expected a number"),
        ("{name: a, compute_ms: 1e999, source: x}", "compute_ms: found '1e999', expected a number of ordinary size"),
        ("{name: a, compute_ms: 1, source: x}, {name: a, compute_ms: 1, source: x}", "phases with different names"),
        ("{name: a, bytes: 1.5, alone_ms: 1, source: x}", "found 1.5, expected a whole number"),
    ],
)
def test_a_profile_must_be_clear(tmp_path: Path, phase: str, said: str) -> None:
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "odd.yaml").write_text(f"name: odd\nmodel: none\nphases: [{phase}]\n")
    with pytest.raises(SpecError, match=said):
        load_profile("odd", tmp_path)


@pytest.mark.parametrize("name", ["bert-8", "resnet50-ring4"])  # the latter's bytes are counted from parameters
def test_a_resized_profile_sends_at_the_rate_that_it_did_and_can_be_stored(name: str) -> None:
    usual, found = load_profile(name), load_profile(name).scale_by(ProfileScaling(compute=1.15, bytes=0.85))
    assert found.compute_ms == pytest.approx(1.15 * usual.compute_ms)
    assert found.comm_ms == pytest.approx(0.85 * usual.comm_ms)
    for phase, before in zip(found.phases, usual.phases, strict=True):
        assert phase.demand_gbps == pytest.approx(before.demand_gbps, rel=1e-6)
    assert Profile.model_validate(found.model_dump(mode="json", by_alias=True)) == found


def test_an_experiment_resizes_all_jobs_and_changes_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "two.yaml"
    path.write_text(
        "name: two\nabout: two\ntopology: dumbbell-2x2\niterations: 2\ntransport: {name: reno}\nprofile: bert-8\n"
        "jobs: {j1: {workers: [s0, s2]}, j2: {profile: vgg19-fig1, workers: [s1, s3]}}\n"
        "factors: {off: {not: {}, bytes: {resized: {bytes: 1.15}}}}\n"
    )
    usual, more = (cell.spec.jobs for cell in load_experiment(path).cells)
    for name, job in usual.items():
        assert more[name].profile.comm_bytes == pytest.approx(1.15 * job.profile.comm_bytes, abs=1)
        assert more[name].profile.compute_ms == job.profile.compute_ms
        assert job.profile == load_profile(job.profile.name)


OWN = """
name: own
about: Jobs with profiles of the experiment's own
topology: dumbbell-2x2
jobs:
  j1: {profile: small, workers: [s0, s2]}
  j2: {profile: vgg19-fig1, workers: [s1, s3]}
iterations: 20
transport: {name: dcqcn}
profiles:
  small: {model: none, phases: [{name: compute, compute_ms: 5, source: ours}]}
  vgg19-fig1: {model: none, phases: [{name: compute, compute_ms: 7, source: ours}]}
"""


def test_an_experiment_may_have_profiles_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(OWN)
    experiment = load_experiment(path)
    (cell,) = experiment.cells
    assert {name: (job.profile.name, job.profile.alone_ms) for name, job in cell.spec.jobs.items()} == {
        "j1": ("small", 5),
        "j2": ("vgg19-fig1", 7),
    }, "before the library's"
    assert type(experiment).model_validate(experiment.model_dump(mode="json")) == experiment
    path.write_text(OWN.replace("compute_ms: 7", "compute_ms: seven"))
    with pytest.raises(SpecError, match=r"own.yaml:12: profiles.vgg19-fig1.phases\[0\].compute_ms: found 'seven'"):
        load_experiment(path)
    path.write_text(OWN.replace("profile: small", "profile: smal"))
    with pytest.raises(SpecError, match="jobs.j1.profile: found 'smal', expected one of"):
        load_experiment(path)
