# SPDX-License-Identifier: Apache-2.0
"""The shipped profiles, and what a profile must say."""

from pathlib import Path

import pytest

from roundabout.spec import EXPERIMENTS, SpecError, load_profile

NAMES = sorted(path.stem for path in (EXPERIMENTS / "profiles").glob("*.yaml"))

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
    assert max(phase.demand_gbps for phase in profile.phases) < 43


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


def test_the_profile_of_figure_1() -> None:
    profile = load_profile("vgg19-fig1")
    assert (profile.compute_ms, profile.comm_bytes, profile.comm_ms) == (150, 574_680_000, 143)
    assert profile.phases[1].demand_gbps == pytest.approx(32.15, abs=0.01)


@pytest.mark.parametrize(
    ("phase", "said"),
    [
        ("{name: a, compute_ms: 1}", "exactly one of source .* and guess"),
        ("{name: a, compute_ms: 1, source: x, guess: y}", "exactly one of source .* and guess"),
        ("{name: a, compute_ms: 1, bytes: 1, alone_ms: 1, source: x}", "either compute_ms, or bytes and alone_ms"),
        ("{name: a, bytes: 1, source: x}", "either compute_ms, or bytes and alone_ms"),
        ("{name: a, compute_ms: 0, source: x}", "phases that take time"),
        ("{name: a, compute_ms: .inf, source: x}", r"compute_ms: found '.inf', expected a number"),
        ("{name: a, compute_ms: 1e999, source: x}", "compute_ms: found inf"),
        ("{name: a, compute_ms: 1, source: x}, {name: a, compute_ms: 1, source: x}", "phases with different names"),
        ("{name: a, bytes: 1.5, alone_ms: 1, source: x}", "found 1.5, expected a whole number"),
    ],
)
def test_a_profile_must_be_clear(tmp_path: Path, phase: str, said: str) -> None:
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "odd.yaml").write_text(f"name: odd\nmodel: none\nphases: [{phase}]\n")
    with pytest.raises(SpecError, match=said):
        load_profile("odd", tmp_path)
