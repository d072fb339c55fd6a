# SPDX-License-Identifier: Apache-2.0
"""How fast workers send while an iteration communicates (Table 3.11 of the thesis; flows 1 and 2 of its Figure 3-9)."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from analysis.data import query
from analysis.degradation.thesis import INSIDE
from analysis.loaded import HEADER_BYTES, LOAD
from analysis.studies import NEAR_GBPS, Study
from analysis.verdicts import HEAVY_GBPS, LIGHT_GBPS
from roundabout.spec import ResolvedJob, TrialSpec
from roundabout.store import Run

LOADS = {30: LIGHT_GBPS, 80: HEAVY_GBPS}


class Rates(NamedTuple):
    """Means in Gbit/s: over the time of communication, and over what was sent, as one reading a packet would have it.

    The second is the higher, the more a sender waits and then hurries.
    """

    over_time: float
    over_packets: float


@dataclass(frozen=True)
class Inside:
    """One study at the load asked for that is nearest to one of the thesis', which it gives in percent.

    Flow 1 leaves a worker that meets no cross traffic, for another such; flow 2 leaves the worker that receives it.
    """

    study: Study
    percent: int
    asked_gbps: float
    flow_1: Rates
    flow_2: Rates

    @property
    def printed(self) -> tuple[float, float] | None:
        """Both flows' means in the thesis, in Gbit/s."""
        loaded = self.study.loaded
        return INSIDE.get((loaded.model, self.percent)) if loaded.traffic == "consistent" else None


def inside(run: Run, found: Sequence[Study]) -> list[Inside]:
    """Of the studies whose cross traffic comes from no worker, by the counters of workers' interfaces (every 10 ms)."""
    rates = _rates(run)
    return [each for study in found for percent in LOADS for each in _inside(study, percent, rates)]


def _inside(study: Study, percent: int, rates: dict[tuple[frozenset[Any], str], Rates]) -> list[Inside]:
    loaded, load_gbps = study.loaded, LOADS[percent]
    asked = min(loaded.levels, key=lambda level: abs(level - load_gbps))
    ends = _ends(loaded.spec, loaded.job)
    if ends is None or abs(asked - load_gbps) > NEAR_GBPS:
        return []
    at = frozenset((loaded.setting | {LOAD: asked}).items())
    known = [rates[at, host] for host in ends if (at, host) in rates]
    return [Inside(study, percent, asked, *known)] if len(known) == len(ends) else []


def _ends(spec: TrialSpec, job: ResolvedJob) -> tuple[str, str] | None:
    """The workers that flows 1 and 2 leave; None where there is no such pair."""
    senders = {each.sender for each in spec.cross_traffic.values()}
    shared = {host for each in spec.cross_traffic.values() for host in each.receivers}
    apart = [sender for sender, receiver in job.ring if not {sender, receiver} & shared]
    meeting = [worker for worker in job.workers if worker in shared]
    return (apart[0], meeting[0]) if apart and meeting and not senders & {*job.workers} else None


def _rates(run: Run) -> dict[tuple[frozenset[Any], str], Rates]:
    """By levels and worker: of the payload sent between samples that lie within one iteration's communication."""
    rows = query(
        run,
        """
        with sampled as (select trial, levels, host, lag(controller_ns) over earlier as begin_ns,
                                controller_ns as end_ns, tx_bytes - lag(tx_bytes) over earlier as wire_bytes,
                                tx_packets - lag(tx_packets) over earlier as packets
                         from counters window earlier as (partition by trial, host order by controller_ns)),
             sent as (select sampled.levels, sampled.host, end_ns - begin_ns as lasted_ns,
                             wire_bytes - $header_bytes * packets as payload_bytes
                      from sampled asof join iterations
                      on sampled.trial = iterations.trial and sampled.host = iterations.host
                         and begin_ns >= compute_end_ns
                      where end_ns <= comm_end_ns and wire_bytes >= 0)
        select levels, host, 8 * sum(payload_bytes) / sum(lasted_ns) as over_time,
               8 * sum(payload_bytes ** 2 / lasted_ns) / sum(payload_bytes) as over_packets
        from sent group by levels, host having sum(payload_bytes) > 0
        """,
        header_bytes=HEADER_BYTES * run.manifest["testbed"]["scale"],
    )
    return {
        (frozenset(json.loads(row["levels"]).items()), row["host"]): Rates(row["over_time"], row["over_packets"])
        for row in rows.to_pylist()
    }
