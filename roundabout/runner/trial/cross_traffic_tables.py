# SPDX-License-Identifier: Apache-2.0
"""Tables of cross traffic from the output of generators. Byte counts and rates are in the hosts' units."""

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import json as arrow_json

from roundabout.runner.tables.rows import Columns, RecordError, parse_event
from roundabout.spec.cross_traffic import CrossTraffic
from roundabout.store.schemas import TABLES

FLOW = pa.schema(
    [
        ("event", pa.string()),
        ("flow", pa.int64()),
        ("bytes", pa.int64()),
        ("destination", pa.string()),
        ("class", pa.string()),
        ("measured", pa.bool_()),
        ("intended_ns", pa.int64()),
        ("start_ns", pa.int64()),
        ("end_ns", pa.int64()),
    ]
)
FLOW_EVENTS = ('{"event":"flow"', '{"event":"unfinished"')
OUTCOME = tuple(column.name for column in TABLES["cross_traffic"] if column.name not in ("traffic", "kind"))
SAID = (
    "offered_gbps",
    "achieved_gbps",
    "schedule_held",
    "lagging_share",
    "due_flows",
    "finished_flows",
    "unfinished_flows",
)
SUMMARY = '{"event":"summary"'


@dataclass(frozen=True)
class GeneratorOutput:
    """The output of one generator: the requested cross traffic, and the lines that its sender printed."""

    spec: CrossTraffic
    lines: Sequence[str]

    def summary(self) -> Columns:
        """Return columns with one row: the load's plan and result. Empty without a result. Raises RecordError."""
        said = next((parse_event(line, self._who) for line in self.lines if line.startswith(SUMMARY)), None)
        plan = next((_plan(line) for line in self.lines if line.startswith('{"flows"')), None)
        if said is None:
            return {}
        values = {"kind": self.spec.kind, **dict.fromkeys(OUTCOME)}
        if plan is None:  # iperf draws no flows
            values |= {name: said[name] for name in ("asked_gbps", "achieved_gbps", "parallel")}
        else:
            values |= {name: said[name] for name in SAID}
            values |= {
                "asked_gbps": plan["plan"]["asked_gbps"],
                "planned_gbps": plan["offered_gbps"],
                "planned_gbps_standard_error": plan["offered_gbps_standard_error"],
                "lateness_p99_us": (said["lateness_us"] or {}).get("p99"),
            }
        return {name: np.array([value], dtype=object) for name, value in values.items()}

    def flows(self) -> Columns:
        """Return columns with one row for each planned flow.

        `start_ns` and `end_ns` are None for a flow that did not start or end.
        """
        lines = [line for line in self.lines if line.startswith(FLOW_EVENTS)]
        if not lines:
            return {}
        options = arrow_json.ParseOptions(explicit_schema=FLOW, unexpected_field_behavior="ignore")
        try:
            table = arrow_json.read_json(io.BytesIO("\n".join(lines).encode()), parse_options=options)
        except pa.ArrowInvalid as error:
            raise RecordError(f"{self._who} printed a line that is no flow: {error}") from error
        return {name: _values(table[name]) for name in FLOW.names if name != "event"}

    @property
    def _who(self) -> str:
        return f"cross traffic on {self.spec.sender}"


def _plan(line: str) -> dict[str, Any]:
    plan: dict[str, Any] = json.loads(line)
    return plan


def _values(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    """Return columns without nulls in their own type, and others as objects."""
    return np.array(column.to_pylist(), dtype=object) if column.null_count else column.to_numpy()
