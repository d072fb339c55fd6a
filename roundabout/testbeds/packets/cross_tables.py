# SPDX-License-Identifier: Apache-2.0
"""The tables of cross traffic that was played packet by packet, as its generators would have reported it."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from roundabout.models.packets import Load, PlayedTraffic, PlayedTrial
from roundabout.runner.tables.trial_start import Columns, TrialStart
from roundabout.runner.trial.load_files import LoadFile
from roundabout.spec import TrialSpec
from roundabout.spec.cross_traffic import CrossTraffic
from roundabout.store.schemas import TABLES
from roundabout.testbeds.packets.loads import PlannedLoads

MAX_LAGGING, MIN_DELIVERED = 0.01, 0.95
"""A schedule was held unless more flows than this lagged, or less of the load arrived (crossgen/results/report.cpp)."""
LATE_MS, LATE_SHARE = 1.0, 0.01
"""A flow lags if it starts later than this, and than this share of the time since the load began."""
BITS_PER_MS_OF_GBPS = 1e6

Floats = npt.NDArray[np.float64]


def build_summaries(spec: TrialSpec, played: PlayedTrial, planned: PlannedLoads, when: TrialStart) -> Iterator[Columns]:
    """Yield the row of each cross traffic: the load's plan, and what became of it while jobs ran."""
    for name, traffic in played.traffic.items():
        requested = spec.cross_traffic[name]
        file = planned.files.get(name)
        values: dict[str, Any] = dict.fromkeys(column.name for column in TABLES["cross_traffic"])
        values |= {
            "traffic": name,
            "kind": requested.kind,
            "asked_gbps": requested.load_gbps,
            "achieved_gbps": traffic.delivered_bytes * 8 / BITS_PER_MS_OF_GBPS / traffic.last_ms,
        }
        if file is None:
            values["parallel"] = traffic.result.streams
        else:
            values |= _flow_summary(traffic, file, planned.loads.by_name[name], planned.loads.lead_ms, values)
        yield {
            **when.columns(requested.sender, np.array([traffic.last_ms])),
            **{column: np.array([value], dtype=object) for column, value in values.items()},
        }


def _flow_summary(
    traffic: PlayedTraffic, file: LoadFile, load: Load, lead_ms: float, values: dict[str, Any]
) -> dict[str, Any]:
    due = _due(traffic, load, lead_ms)
    intended_ms, start_ms = _intended_ms(load, lead_ms)[due], traffic.start_ms[due]
    measured = intended_ms >= 0
    late_ms = (start_ms - intended_ms)[measured]
    allowed_ms = np.maximum(LATE_MS, LATE_SHARE * (intended_ms[measured] + lead_ms))
    lagging = float(np.mean(np.isnan(late_ms) | (late_ms > allowed_ms))) if len(late_ms) else 0.0
    offered = float(load.flows["bytes"][due][measured].sum()) * 8 / BITS_PER_MS_OF_GBPS / traffic.last_ms
    begun = late_ms[~np.isnan(late_ms)]
    finished = int((traffic.end_ms[due] <= traffic.last_ms).sum())
    is_held = lagging <= MAX_LAGGING and values["achieved_gbps"] >= MIN_DELIVERED * offered
    return {
        "planned_gbps": file.summary["offered_gbps"],
        "planned_gbps_standard_error": file.summary["offered_gbps_standard_error"],
        "offered_gbps": offered,
        "schedule_held": is_held if len(late_ms) else None,
        "lagging_share": lagging,
        "lateness_p99_us": float(np.percentile(begun, 99)) * 1e3 if len(begun) else None,
        "due_flows": len(intended_ms),
        "finished_flows": finished,
        "unfinished_flows": len(intended_ms) - finished,
    }


def build_flows(spec: TrialSpec, played: PlayedTrial, planned: PlannedLoads, when: TrialStart) -> Iterator[Columns]:
    """Yield a row for each flow of cross traffic that was due before the last job ended."""
    for name, file in planned.files.items():
        traffic, load = played.traffic[name], planned.loads.by_name[name]
        due = _due(traffic, load, planned.loads.lead_ms)
        intended_ms = _intended_ms(load, planned.loads.lead_ms)[due]
        length = len(intended_ms)
        if not length:
            continue
        requested: CrossTraffic = spec.cross_traffic[name]
        flows = file.flows[due]
        yield {
            **when.columns(requested.sender, intended_ms),
            "traffic": [name] * length,
            "flow": np.arange(length),
            "class": np.array(file.header["classes"])[flows["class"]],
            "destination": np.array(file.header["destinations"])[flows["destination"]],
            "bytes": flows["bytes"].astype(np.int64),
            "measured": intended_ms >= 0,
            "start_ns": _instants(when, traffic.start_ms[due]),
            "end_ns": _instants(when, np.where(traffic.end_ms <= traffic.last_ms, traffic.end_ms, np.nan)[due]),
        }


def _intended_ms(load: Load, lead_ms: float) -> Floats:
    started: Floats = load.flows["at_ps"] / 1e9 - lead_ms
    return started


def _due(traffic: PlayedTraffic, load: Load, lead_ms: float) -> slice:
    """Return the flows whose time came before the last job ended."""
    return slice(0, int(np.searchsorted(_intended_ms(load, lead_ms), traffic.last_ms, side="right")))


def _instants(when: TrialStart, at_ms: Floats) -> npt.NDArray[Any]:
    """Return instants on the run's clock; None where there are none."""
    known = ~np.isnan(at_ms)
    found = np.full(len(at_ms), None, dtype=object)
    found[known] = when.ns(at_ms[known])
    return found
