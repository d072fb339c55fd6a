# SPDX-License-Identifier: Apache-2.0
"""The set of parameters that an identification's representative becomes, as the text of a file of `sets/`."""

import json
from collections.abc import Mapping
from typing import Any

from analysis.calibration.candidates import Candidate
from roundabout.spec.transports.identification import Identification
from roundabout.spec.transports.registry import find_declaration
from roundabout.spec.transports.sets import Chosen, Figure, ParameterSet, read_set


def set_text(document: Identification, record: Mapping[str, Any]) -> str:
    """Return the file of the set: what no reading is of has the vendor's origins, the rest says how it was chosen."""
    candidate = Candidate(document, record["representative"])
    declared = find_declaration(str(document.transport["name"]))
    assert declared
    vendor = read_set(declared, document.defaults)
    parameters = {name: _origin(candidate, name, figure) for name, figure in vendor.parameters.items()}
    counted = f"{len(record['accepted'])} of {record['candidates']} candidates fit"
    source = f"identified by {document.name}: {counted} (SHA-256 {record['hash']})"
    lines = [
        "# SPDX-License-Identifier: Apache-2.0",
        f"# Written by `roundabout identify {document.name} --write`. All that fits, with hashes, is in",
        f"# experiments/identification/{document.name}.accepted.json.",
        "schema: 1",
        f"name: {document.set_name}",
        f"about: {_quoted(_about(document, vendor))}",
        f"source: {_quoted(source)}",
        f"line_rate_gbps: {_plain(vendor.line_rate_gbps)}",
        "parameters:",
        *(f"  {name}: {text}" for name, text in parameters.items()),
        "ecn:",
        *(f"  {name}: {text}" for name, text in _thresholds(candidate).items()),
    ]
    return "\n".join(lines) + "\n"


def _about(document: Identification, vendor: ParameterSet) -> str:
    return f"{document.about}; what is not identified is that of {vendor.name}, from which this departs least"


def _origin(candidate: Candidate, name: str, vendor: Chosen) -> str:
    document = candidate.document
    if name in candidate.departures:
        return _entry(candidate.values[name], "identified", _chosen(candidate, name))
    figure: Figure = document.fixed.get(name, vendor)
    kind = next(each for each in ("source", "guess", "identified") if getattr(figure, each))
    value = candidate.values.get(name, figure.value)
    return _entry(value, kind, getattr(figure, kind))


def _chosen(candidate: Candidate, name: str) -> str:
    """Return which measurements chose a reading, among which values."""
    document, reading = candidate.document, candidate.document.readings[name]
    values = ", ".join(_plain(each) for each in reading.values or ())
    among = f"among {len(reading.values or ())} readings ({values})"
    return f"{document.source}, {among}: {reading.source or reading.guess}"


def _thresholds(candidate: Candidate) -> dict[str, str]:
    cells, departs, readings = candidate.document.thresholds, candidate.departures, candidate.document.readings
    found = {}
    for name, count in (("Kmin_bytes", cells.Kmin_cells), ("Kmax_bytes", cells.Kmax_cells)):
        size = _plain(candidate.values["cell_bytes"])
        of = f"{_plain(count)} cells of {size} bytes ({cells.source})"
        kind = "identified" if "cell_bytes" in departs else "guess"
        reading = readings["cell_bytes"]
        why = _chosen(candidate, "cell_bytes") if kind == "identified" else reading.source or reading.guess
        found[name] = _entry(getattr(candidate.ecn, name), kind, f"{of}; {why}")
    reading = readings["Pmax"]
    if "Pmax" in departs:
        found["Pmax"] = _entry(candidate.ecn.Pmax, "identified", _chosen(candidate, "Pmax"))
    else:
        kind = "source" if reading.source else "guess"
        found["Pmax"] = _entry(candidate.ecn.Pmax, kind, reading.source or reading.guess or "")
    return found


def _entry(value: float | str, kind: str, origin: str) -> str:
    return f"{{value: {value if isinstance(value, str) else _plain(value)}, {kind}: {_quoted(origin)}}}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _plain(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)
