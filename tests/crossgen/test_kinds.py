# SPDX-License-Identifier: Apache-2.0
"""Plans of checkpoints, storage incast and KV caches: bytes, instants and loads are as requested."""

import itertools
import json
import math
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tests.crossgen.conftest import CROSSGEN, show

pytestmark = pytest.mark.unit

TOKENS = {
    0.01: 29, 0.05: 181, 0.1: 207, 0.15: 372, 0.2: 387, 0.3: 403, 0.4: 703, 0.5: 1020, 0.6: 1071,
    0.7: 1130, 0.8: 1315, 0.85: 1877, 0.9: 2735, 0.95: 4083, 0.99: 4142, 0.999: 6212,
}  # fmt: skip
"""Quantiles of ContextTokens in AzureLLMInferenceTrace_conv.csv, computed with numpy (`inverted_cdf`)."""
FEWEST_TOKENS, MOST_TOKENS, MEAN_TOKENS = 2, 14_050, 1154.697
"""Of the same trace."""

properties = settings(max_examples=40, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
seeds = st.integers(0, 2**63 - 1)


def run(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([CROSSGEN, "plan", *map(str, words)], capture_output=True, text=True)


def planned(path: Path, *words: object) -> tuple[dict[str, Any], list[tuple[int, int, str]]]:
    """Return what a plan says, and its flows: start in ns, bytes, destination."""
    done = run(*words, "--output", path, "--json")
    assert done.returncode == 0, done.stderr
    flows = [(int(row["start_ns"]), int(row["bytes"]), row["destination"]) for row in show(path)]
    assert flows == sorted(flows, key=lambda flow: flow[0])
    return json.loads(done.stdout), flows


@properties
@given(
    load_gbps=st.floats(0.5, 25),
    duration_s=st.integers(1, 20),
    names=st.integers(1, 7),
    unit_bytes=st.integers(10**6, 2 * 10**8),
    seed=seeds,
)
def test_checkpoints_come_periodically_and_to_all_destinations_at_once(  # noqa: PLR0917
    tmp_path: Path, load_gbps: float, duration_s: int, names: int, unit_bytes: int, seed: int
) -> None:
    destinations = [f"s{place}" for place in range(names)]
    options = ["--kind", "checkpoint", "--load-gbps", load_gbps, "--duration-s", duration_s, "--seed", seed]
    options += ["--unit-bytes", unit_bytes, "--destinations", ",".join(destinations)]
    volume = load_gbps / 8 * duration_s * 1e9
    if volume < unit_bytes * (1 - 1e-9):
        assert "expected a load that holds at least one checkpoint" in run(*options, "--output", "/dev/null").stderr
        return
    said, flows = planned(tmp_path / "x.load", *options)
    count, period_ns = len(flows) // names, 8 * unit_bytes / load_gbps
    assert count == pytest.approx(volume / unit_bytes, abs=1) and count <= volume / unit_bytes * (1 + 1e-9)
    checkpoints = [flows[first : first + names] for first in range(0, len(flows), names)]
    for place, parts in enumerate(checkpoints):
        assert {start for start, _, _ in parts} == {parts[0][0]}
        assert [name for _, _, name in parts] == destinations
        assert sum(size for _, size, _ in parts) == unit_bytes
        assert max(size for _, size, _ in parts) - min(size for _, size, _ in parts) <= 1
        assert parts[0][0] - flows[0][0] == pytest.approx(place * period_ns, abs=2)
    assert flows[0][0] < period_ns
    assert flows[-1][0] <= duration_s * 1e9
    assert said["plan"]["checkpoint_period_ns"] == pytest.approx(period_ns)
    assert said["offered_gbps"] == pytest.approx(8 * count * unit_bytes / duration_s / 1e9)
    assert said["plan"]["expected_gbps"] == pytest.approx(said["offered_gbps"])
    assert said["offered_gbps_standard_error"] == 0


@properties
@given(load_gbps=st.floats(0.5, 25), duration_s=st.integers(1, 5), unit_bytes=st.integers(10**6, 10**7), seed=seeds)
def test_servers_with_a_seed_answer_the_same_requests(
    tmp_path: Path, load_gbps: float, duration_s: int, unit_bytes: int, seed: int
) -> None:
    options = ["--kind", "incast", "--load-gbps", load_gbps, "--duration-s", duration_s, "--unit-bytes", unit_bytes]
    options += ["--destinations", "a,b,c", "--seed", seed]
    said, flows = planned(tmp_path / "x.load", *options)
    assert planned(tmp_path / "y.load", *options)[1] == flows
    assert (tmp_path / "x.load").read_bytes() == (tmp_path / "y.load").read_bytes()
    blocks = load_gbps / 8 * duration_s * 1e9 / unit_bytes
    assert len(flows) == pytest.approx(math.floor(blocks), abs=blocks * 1e-9)
    assert {size for _, size, _ in flows} == {unit_bytes}
    assert said["offered_gbps"] == pytest.approx(8 * len(flows) * unit_bytes / duration_s / 1e9)
    assert said["offered_gbps"] <= load_gbps * (1 + 1e-9)
    assert said["offered_gbps_standard_error"] == 0


@properties
@given(load_gbps=st.floats(2, 25), duration_s=st.integers(5, 20), unit_bytes=st.integers(1000, 10**5), seed=seeds)
def test_key_value_caches_are_of_whole_loads_and_published_sizes(
    tmp_path: Path, load_gbps: float, duration_s: int, unit_bytes: int, seed: int
) -> None:
    options = ["--kind", "kv-cache", "--load-gbps", load_gbps, "--duration-s", duration_s, "--unit-bytes", unit_bytes]
    said, flows = planned(tmp_path / "x.load", *options, "--seed", seed)
    assert said["plan"]["mean_bytes"] / unit_bytes == pytest.approx(MEAN_TOKENS, rel=0.003)
    assert len(flows) == math.floor(load_gbps / 8 * duration_s * 1e9 / said["plan"]["mean_bytes"])
    sizes = [size for _, size, _ in flows]
    assert min(sizes) >= FEWEST_TOKENS * unit_bytes and max(sizes) <= MOST_TOKENS * unit_bytes
    assert abs(said["offered_gbps"] - said["plan"]["expected_gbps"]) < 6 * said["offered_gbps_standard_error"]
    # Dvoretzky, Kiefer and Wolfowitz: a share of all draws is further off with a probability of 1e-6.
    bound = math.sqrt(math.log(2e6) / 2 / len(sizes))
    for probability, tokens in TOKENS.items():
        share = sum(size <= tokens * unit_bytes + 0.5 for size in sizes) / len(sizes)
        assert share == pytest.approx(probability, abs=bound)


def test_many_key_value_caches_have_the_quantiles_of_the_trace(tmp_path: Path) -> None:
    options = ["--kind", "kv-cache", "--load-gbps", 100, "--duration-s", 100, "--unit-bytes", 1000, "--seed", 3]
    _, flows = planned(tmp_path / "x.load", *options)
    sizes = sorted(size for _, size, _ in flows)
    for probability, tokens in TOKENS.items():
        assert sizes[math.ceil(probability * len(sizes)) - 1] / 1000 == pytest.approx(tokens, rel=0.02, abs=2)
    gaps = [later[0] - earlier[0] for earlier, later in itertools.pairwise(flows)]
    mean = sum(gaps) / len(gaps)
    variation = sum((gap - mean) ** 2 for gap in gaps) / len(gaps) / mean**2
    assert variation == pytest.approx(1, abs=0.05)  # exponential gaps


@properties
@given(kind=st.sampled_from(["checkpoint", "incast", "kv-cache"]), load_gbps=st.floats(2, 25), seed=seeds)
def test_a_hundredth_of_load_and_sizes_keeps_instants(tmp_path: Path, kind: str, load_gbps: float, seed: int) -> None:
    options = ["--kind", kind, "--duration-s", 5, "--seed", seed, "--destinations", "a,b"]
    _, paper = planned(tmp_path / "x.load", *options, "--load-gbps", load_gbps)
    _, lab = planned(tmp_path / "y.load", *options, "--load-gbps", load_gbps / 100, "--scale-sizes", 0.01)
    assert len(lab) == len(paper)
    for (start, size, name), (lab_start, lab_size, lab_name) in zip(paper, lab, strict=True):
        assert lab_name == name
        assert lab_start == pytest.approx(start, abs=2)
        assert lab_size == pytest.approx(size / 100, abs=1)


@pytest.mark.parametrize("kind", ["checkpoint", "incast", "kv-cache"])
def test_another_seed_gives_other_instants(tmp_path: Path, kind: str) -> None:
    options = ["--kind", kind, "--load-gbps", 8, "--duration-s", 10, "--seed"]
    one, other = (planned(tmp_path / "x.load", *options, seed)[1] for seed in (1, 2))
    assert one[0][0] != other[0][0]


@pytest.mark.parametrize(
    ("kind", "unit_bytes"), [("checkpoint", 405e9 * 14 / 16384), ("incast", 2**20), ("kv-cache", 2 * 80 * 128 * 2)]
)
def test_units_are_published_ones_by_default(tmp_path: Path, kind: str, unit_bytes: float) -> None:
    options = ["--kind", kind, "--load-gbps", 8, "--duration-s", 10]
    said, _ = planned(tmp_path / "x.load", *options)
    assert said["plan"]["unit_bytes"] == unit_bytes
    assert list(said["classes"]) == [said["plan"]["kind"]] == [kind]
    halved, _ = planned(tmp_path / "x.load", *options, "--scale-sizes", 0.5)
    assert halved["plan"]["unit_bytes"] == unit_bytes / 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--unit-bytes", 5], "--unit-bytes requires --kind"),
        (["--kind", "consistent", "--unit-bytes", 5], "--unit-bytes: expected a --kind that has units"),
        (["--kind", "incast", "--sizes", "x"], "--sizes: expected --kind consistent, found it with --kind incast"),
        (["--kind", "kv-cache", "--burst-width-us", 9], "--burst-width-us: expected --kind consistent, found it with"),
        (["--kind", "backup"], "--kind: "),
        (["--kind", "incast", "--unit-bytes", 0], "--unit-bytes: "),
        (["--kind", "incast", "--unit-bytes", "nan"], "--unit-bytes: "),
    ],
)
def test_options_that_do_not_fit_are_refused(options: list[object], said: str) -> None:
    done = run("--load-gbps", 1, "--duration-s", 1, "--output", "/dev/null", *options)
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--unit-bytes", 2, "--destinations", "a,b,c"], "expected a byte of a checkpoint for each of 3. destinations"),
        (["--unit-bytes", 10**9], "expected a load that holds at least one checkpoint, 1000000000. bytes, found"),
    ],
)
def test_a_checkpoint_that_cannot_be_is_refused(options: list[object], said: str) -> None:
    done = run("--kind", "checkpoint", "--load-gbps", 1, "--duration-s", 1, "--output", "/dev/null", *options)
    assert done.returncode == 1
    assert said in done.stderr
