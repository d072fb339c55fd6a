# SPDX-License-Identifier: Apache-2.0
"""Distributions of flow sizes as users have them: heavy tails, percent, and CSV."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.crossgen.conftest import CROSSGEN

pytestmark = pytest.mark.unit

CASES = Path(__file__).parent
# Of two sizes a and b with probabilities p and 1 - p: (b - a) sqrt(p (1 - p)), here 3,160,665 bytes.
HEAVY_DEVIATION_BYTES = (100_000_000 - 1000) * (0.001 * 0.999) ** 0.5
HEAVY = "0 0\n1000 0.999\n100000000 1\n"


def plan(sizes: Path, *options: object, load_gbps: float = 0.1, duration_s: float = 1) -> tuple[dict[str, Any], str]:
    """Return what `crossgen plan` prints as JSON, and its notes."""
    words = ["--sizes", sizes, "--load-gbps", load_gbps, "--duration-s", duration_s, "--output", "/dev/null", *options]
    argv = [CROSSGEN, "plan", "--json", *map(str, words)]
    done = subprocess.run(argv, check=True, capture_output=True, text=True)
    return json.loads(done.stdout), done.stderr


def test_a_heavy_tail_has_the_distributions_error_although_no_large_flow_was_drawn() -> None:
    """By hand: 12.5 MB hold 123 flows of 100,999 bytes on average, whose sum is off by 35 MB (0.28 Gbit/s)."""
    sizes = CASES / "sizes-heavy-tail" / "tail.txt"
    found, notes = plan(sizes)
    assert (found["flows"], found["mean_bytes"]) == (123, 1000)
    assert found["plan"]["mean_bytes"] == pytest.approx(100_999)
    assert found["offered_gbps_standard_error"] == pytest.approx(8e-9 * 123**0.5 * HEAVY_DEVIATION_BYTES)
    assert notes == (
        "crossgen: the duration is too short for these sizes: the standard error of the offered load is 282 % of the "
        "load; plan at least 797 s, or other sizes\n"
    )
    words = ["--sizes", sizes, "--load-gbps", "0.1", "--duration-s", "1", "--output", "/dev/null"]
    text = subprocess.run([CROSSGEN, "plan", *words], check=True, capture_output=True, text=True).stdout
    assert "mean size     1000 bytes; of the distribution: 100999\n" in text
    assert "offered load  0.000984 Gbit/s, standard error 0.280428\n" in text


@pytest.mark.parametrize(
    ("content", "options", "duration_s", "error_gbps", "is_short"),
    [
        (HEAVY, [], 800, 8 * (99_010**0.5) * HEAVY_DEVIATION_BYTES / 800e9, False),
        (HEAVY, ["--burst-width-us", 1000, "--volumes", "exact"], 1, 0, False),
        ("1000 1\n", [], 0.01, 0, False),
        ("0 0\n3000 1\n", ["--sizes-between", "linear"], 1, 8e-9 * (8333 * 3000**2 / 12) ** 0.5, False),
        ("0 0\n3000 1\n", ["--sizes-between", "linear"], 0.002, 8 * (16 * 3000**2 / 12) ** 0.5 / 2e6, True),
    ],
    ids=["a long heavy tail", "exact volumes", "one size", "uniform", "16 uniform flows"],
)
def test_the_error_follows_from_the_distribution(  # noqa: PLR0917
    tmp_path: Path, content: str, options: list[object], duration_s: float, error_gbps: float, is_short: bool
) -> None:
    sizes = tmp_path / "sizes"
    sizes.write_text(content)
    found, notes = plan(sizes, *options, duration_s=duration_s)
    assert found["offered_gbps_standard_error"] == pytest.approx(error_gbps, rel=1e-6)
    assert ("the duration is too short for these sizes" in notes) == is_short


@pytest.mark.parametrize(
    ("content", "mean_bytes", "is_percent"),
    [
        ((CASES / "sizes-in-percent" / "web.txt").read_text(), 0.15 * 1e4 + 0.55 * 1e6 + 0.3 * 3e7, True),
        ((CASES / "sizes-with-commas" / "a.csv").read_text(), 5500, False),
        ('"bytes";"cdf"\r\n"1000";"50"\r\n"10000";"100"\r\n', 5500, True),
        ("size,cdf\n1000, 50%\n10000, 100%\n", 5500, True),
        ("\ufeff1000,\t0.5\n10000,\t1.0 # the largest\n\n", 5500, False),
    ],
    ids=["percent", "commas", "semicolons and quotes", "percent signs", "a byte-order mark"],
)
def test_other_forms_of_a_distribution_are_read(
    tmp_path: Path, content: str, mean_bytes: float, is_percent: bool
) -> None:
    sizes = tmp_path / "sizes"
    sizes.write_text(content, encoding="utf-8", newline="")
    found, notes = plan(sizes, load_gbps=10)
    assert found["plan"]["mean_bytes"] == pytest.approx(mean_bytes)
    assert ("the last cumulative probability is 100, so all are percent" in notes) == is_percent
