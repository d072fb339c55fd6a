# SPDX-License-Identifier: Apache-2.0
"""How much sooner iterations end under one variant than under another."""

from analysis.quantities import Asked, Case, quantity
from analysis.reading.cells import speedup


@quantity("speedup of median iteration time", unit="times", needs=("of", "over"))
def of_median(asked: Asked) -> list[Case]:
    """Median iteration time of variant `over` over that of `of`: of one job, or of the job that gains least."""
    slow, fast = (next(iter(asked.cells_of(variant)), None) for variant in (asked.over, asked.of))
    found = speedup(slow, fast, asked.job) if slow and fast else None
    return [Case(asked.job or "least", *found)] if found else []
