# SPDX-License-Identifier: Apache-2.0
"""Ratios of the picture of docs/results/spraying.md."""

from typing import Any

import pytest

from docgen.pictures.routing_gains import ratio_of

pytestmark = pytest.mark.unit


def cell(group: str, routes: str, variant: str, mean_ms: float, half_ms: float = 0) -> dict[str, Any]:
    levels = {"jobs": group, "routes": routes, "variant": variant}
    return {"levels": levels, "mean_ms": mean_ms, "mean_ci95_ms": [mean_ms - half_ms, mean_ms + half_ms]}


def test_a_ratio_is_that_of_the_mean_of_all_jobs_to_that_alone_on_static_paths() -> None:
    cells = [
        *(cell("two", "static", "alone", mean_ms) for mean_ms in (99, 101)),
        *(cell("two", "spray", "fair", mean_ms, half_ms) for mean_ms, half_ms in ((120, 1), (140, 5))),
        *(cell("three", "spray", "fair", 999) for _ in range(3)),
    ]
    assert ratio_of(cells, "two", "spray", "fair") == pytest.approx((1.3, 1.27, 1.33))


def test_three_jobs_are_shifted_by_thirds() -> None:
    cells = [cell("three", "static", "alone", 100), cell("three", "static", "shifted-by-thirds", 110)]
    assert ratio_of(cells, "three", "static", "shifted").value == pytest.approx(1.1)
