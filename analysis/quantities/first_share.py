# SPDX-License-Identifier: Apache-2.0
"""The ratio of two jobs' bytes while they first share a link."""

from analysis.quantities import Case, QuantityRequest, mean_of, quantity
from analysis.reading.cells import first_shares


@quantity("first-iteration bandwidth share j1/j2", unit="times", needs=("of",), jobs=("j1", "j2"))
def share(request: QuantityRequest) -> list[Case]:
    """Return the bytes sent by j1 over those sent by j2 while both jobs first send; the mean of repetitions."""
    cell = next(iter(request.cells), None)
    shares = first_shares(request.reading.run, cell, "j1", "j2") if cell else []
    return [Case("j1/j2", *mean_of(shares))] if shares else []
