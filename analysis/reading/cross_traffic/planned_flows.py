# SPDX-License-Identifier: Apache-2.0
"""The flows of a burst load as planned, and the instants of its bursts (Salamy, Figure B-4)."""

from dataclasses import dataclass

import numpy as np

from analysis.reading.data import query
from analysis.statistics.intervals import Array
from roundabout.store import Run

LOAD_GBPS = 7.3
"""The load of Figure B-4, Gbit/s; the nearest load of a run is shown."""
WIDTH_MS = 1.0
"""Width of a burst, ms (Salamy, section 2.5; docs/reference/load-file.md)."""


@dataclass(frozen=True)
class PlannedFlows:
    """The planned flows of one load in the order of their starts, in ms from the first burst.

    `bursts_ms` are the begins of bursts, and `mean_gbps` is the load from the first burst to the last.
    """

    asked_gbps: float
    at_ms: Array
    megabytes: Array
    bursts_ms: Array
    mean_gbps: float


def planned_flows(run: Run) -> PlannedFlows | None:
    """Return the planned flows of the first trial under burst traffic at the load nearest to `LOAD_GBPS`.

    None if the trial has fewer than two bursts.
    """
    flows = query(
        run,
        """
        with chosen as (select trial, traffic, asked_gbps from cross_traffic where kind = 'burst'
                        order by abs(asked_gbps - $load_gbps), trial limit 1)
        select controller_ns, bytes, class = 'burst' as bursts, asked_gbps
        from cross_flows join chosen using (trial, traffic) order by controller_ns, flow
        """,
        load_gbps=LOAD_GBPS,
    )
    in_bursts = flows["bursts"].to_numpy()
    if not in_bursts.any():
        return None
    at_ns, size = flows["controller_ns"].to_numpy(), flows["bytes"].to_numpy()
    at_ms = (at_ns - at_ns[in_bursts][0]) / 1e6
    bursts_ms = at_ms[in_bursts]
    bursts_ms = bursts_ms[np.diff(bursts_ms, prepend=-np.inf) >= WIDTH_MS]
    if len(bursts_ms) < 2:
        return None
    whole = (at_ms >= 0) & (at_ms < bursts_ms[-1])
    mean_gbps = float(size[whole].sum() * 8 / 1e6 / bursts_ms[-1])
    return PlannedFlows(flows["asked_gbps"][0].as_py(), at_ms, size / 1e6, bursts_ms, mean_gbps)
