# SPDX-License-Identifier: Apache-2.0
"""The bandwidth of each of two jobs while they first share a link."""

from analysis.quantities import Case, QuantityRequest, mean_of, quantity
from analysis.reading.cells import first_overlaps

PAIR = ("j1", "j2")


@quantity("first-iteration bandwidth", unit="Gbit/s", digits=1, jobs=PAIR)
def bandwidth(request: QuantityRequest) -> list[Case]:
    """Return the rates at which a host of j1 and one of j2 send while both jobs first send; the mean of repetitions."""
    cases = []
    for cell in request.cells:
        met = [] if cell.spec.one_job_at_a_time else first_overlaps(request.reading.run, cell, PAIR)
        for place, job in enumerate(PAIR if met else ()):
            hosts = len(cell.spec.jobs[job].hosts)
            rates = [sent[place] * 8 / 1e9 / hosts / length_s for length_s, sent in met]
            cases.append(request.case(cell, job, *mean_of(rates)))
    return cases
