# SPDX-License-Identifier: Apache-2.0
"""The rates at which workers send while an iteration communicates (Salamy, Table 3.11; flows 1 and 2 of Figure 3-9)."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from analysis.papers.salamy import HEAVY_GBPS, INTRA_ITERATION, LIGHT_GBPS
from analysis.reading.cached_run import cached_per_run
from analysis.reading.cells import CellId, cell_of_trial
from analysis.reading.cross_traffic.load_sweep_data import NEAR_GBPS, JobUnderLoad, jobs_under_load
from analysis.reading.data import query, rows_with_arrays
from analysis.statistics.intervals import Array
from roundabout.spec import ResolvedJob, TrialSpec
from roundabout.spec.frames import HEADER_BYTES
from roundabout.store import Run, Units

LOADS = {30: LIGHT_GBPS, 80: HEAVY_GBPS}


class Rates(NamedTuple):
    """Mean rates in Gbit/s: over the time of communication, and over the sent bytes, as one reading a packet gives it.

    `over_packets` exceeds `over_time` the more, the more the sender's rate varies.
    """

    over_time: float
    over_packets: float


@dataclass(frozen=True)
class IntraIterationRates:
    """The rates of one job at the load nearest to one of Salamy's; `percent` is Salamy's name of the load.

    Flow 1 goes from one worker without cross traffic to another; flow 2 leaves the worker that receives cross traffic.
    """

    loaded: JobUnderLoad
    percent: int
    asked_gbps: float
    flow_1: Rates
    flow_2: Rates

    @property
    def printed(self) -> tuple[float, float] | None:
        """Return the means of flows 1 and 2 that Salamy prints, Gbit/s; None if there are none for this case."""
        return INTRA_ITERATION.get((self.loaded.model, self.percent)) if self.loaded.traffic == "consistent" else None


@cached_per_run
def intra_iteration_rates(run: Run) -> list[IntraIterationRates]:
    """Return the rates inside iterations of jobs near Salamy's loads, from workers' counters (every 10 ms)."""
    jobs = jobs_under_load(run)
    wanted = [(loaded, percent, _nearest(loaded, load)) for loaded in jobs for percent, load in LOADS.items()]
    rates = _rates(run, {loaded.cells[requested] for loaded, _, requested in wanted})
    result = []
    for loaded, percent, requested in wanted:
        places = [(loaded.cells[requested], host) for host in flow_senders(loaded.spec, loaded.job)]
        known = [rates[place] for place in places if place in rates]
        if abs(requested - LOADS[percent]) <= NEAR_GBPS and len(known) == 2:
            result.append(IntraIterationRates(loaded, percent, requested, *known))
    return result


def _nearest(loaded: JobUnderLoad, load_gbps: float) -> float:
    return min(loaded.levels, key=lambda requested: abs(requested - load_gbps))


def flow_senders(spec: TrialSpec, job: ResolvedJob) -> list[str]:
    """Return the workers that send flows 1 and 2; empty if there is no such pair, or a worker sends cross traffic."""
    senders = {each.sender for each in spec.cross_traffic.values()}
    shared = {host for each in spec.cross_traffic.values() for host in each.receivers}
    apart = [sender for sender, receiver in job.pairs if not {sender, receiver} & shared]
    sharing = [worker for worker in job.workers if worker in shared]
    return [apart[0], sharing[0]] if apart and sharing and not senders & {*job.workers} else []


def _rates(run: Run, cells: set[CellId]) -> dict[tuple[CellId, str], Rates]:
    """Return the rates by cell and worker, between samples that lie within one communication."""
    of_trial = cell_of_trial(run)
    rows = query(
        run,
        """
        with sent as (select trial, host, list(controller_ns order by controller_ns) as at_ns,
                             list(tx_bytes order by controller_ns) as wire_bytes,
                             list(tx_packets order by controller_ns) as packets
                      from counters where trial in (select unnest($trials)) group by all),
             ran as (select trial, host, list(compute_end_ns order by iteration) as begins_ns,
                            list(comm_end_ns order by iteration) as ends_ns from iterations group by all)
        select * from sent join ran using (trial, host)
        """,
        trials=[trial for trial, cell in of_trial.items() if cell in cells],
    )
    header_bytes = HEADER_BYTES * Units.from_manifest(run.manifest["testbed"]).bytes_scale
    parts = defaultdict(list)
    for row in rows_with_arrays(rows):
        parts[of_trial[row["trial"]], row["host"]].append(_sent(row, header_bytes))
    whole = {place: np.concatenate(each, axis=1) for place, each in parts.items()}
    return {
        place: Rates(8 * payload.sum() / lasted.sum(), 8 * (payload**2 / lasted).sum() / payload.sum())
        for place, (payload, lasted) in whole.items()
        if payload.sum() > 0
    }


def _sent(row: dict[str, Any], header_bytes: float) -> Array:
    """Return the payload bytes and their ns: shape (2, pairs of samples within one communication)."""
    begins_ns, ends_ns = row["at_ns"][:-1], row["at_ns"][1:]
    place = np.searchsorted(row["begins_ns"], begins_ns, side="right") - 1
    within = (place >= 0) & (ends_ns <= row["ends_ns"][place])
    wire_bytes = np.diff(row["wire_bytes"])
    payload = wire_bytes - header_bytes * np.diff(row["packets"])
    return np.stack([payload, ends_ns - begins_ns])[:, within & (wire_bytes >= 0)]
