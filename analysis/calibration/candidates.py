# SPDX-License-Identifier: Apache-2.0
"""Candidates of an identification: one reading of everything unknown, as a trial of the packet-level model plays it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.stats import qmc

from roundabout.spec import Topology, Transport, TrialSpec
from roundabout.spec.delays import Delays
from roundabout.spec.transports.declarations import Declaration
from roundabout.spec.transports.identification import OF_TRIALS, Identification
from roundabout.spec.transports.registry import find_declaration
from roundabout.spec.transports.sets import Ecn, PublishedValues, find_published

USUAL_FEEDBACK_US = 8.0
"""Delays from a mark to the cut of a rate on a dumbbell, with a topology's defaults: of five links, and of both NICs.

Sending, and the jitter of CNPs, come on top.
"""

DIGITS = 3
"""Significant digits of a sampled value: measurements resolve no more."""

KEPT = ("T_us",)
"""Parameters that an experiment varies, and so keeps beside a candidate's."""


@dataclass(frozen=True)
class Candidate:
    """A value for each reading of an identification, by name."""

    document: Identification
    values: Mapping[str, float]

    @property
    def departures(self) -> tuple[str, ...]:
        """Return the readings whose value is another than the vendor's. A value of a range never departs."""
        readings = self.document.readings
        return tuple(
            name for name, value in self.values.items() if readings[name].values and value != readings[name].default
        )

    @property
    def distance(self) -> float:
        """Return how far the values of ranges lie from the usual ones, as shares of the ranges, summed."""
        ranges = {name: each for name, each in self.document.readings.items() if each.values is None}
        widths = {name: (each.most or 0.0) - (each.least or 0.0) for name, each in ranges.items()}
        return sum(abs(self.values[name] - each.default) / widths[name] for name, each in ranges.items())

    @cached_property
    def published(self) -> PublishedValues:
        """Return the transport's parameters and the marking thresholds, in the form of a set."""
        whole = {each.name for each in self._declaration.parameters if each.is_whole and not each.names}
        own = {name: int(value) if name in whole else value for name, value in self._own_parameters.items()}
        parameters = {**find_published(self._declaration, self.document.defaults).parameters, **own}
        return PublishedValues(name=self.document.set_name, parameters=parameters, ecn=self.ecn)

    @property
    def ecn(self) -> Ecn:
        """Return the marking thresholds: cells times their size."""
        cells, size = self.document.thresholds, self.values["cell_bytes"]
        return Ecn(Kmin_bytes=cells.Kmin_cells * size, Kmax_bytes=cells.Kmax_cells * size, Pmax=self.values["Pmax"])

    def applied_to(self, spec: TrialSpec) -> TrialSpec:
        """Return a trial with the candidate's values: of jobs over the transport or one that varies it, and of delays.

        What an experiment varies between jobs stays: T, and parameters that the candidate has no value for.
        """
        jobs = {}
        for name, job in spec.jobs.items():
            declared = job.transport.declaration
            if declared and any(declared.origin(each) == self._declaration.name for each in declared.parameters):
                changed = {"transport": self._with_values(job.transport), "flows": int(self.values["flows"])}
                jobs[name] = job.model_copy(update=changed)
            else:
                jobs[name] = job
        return spec.model_copy(update={"jobs": jobs, "topology": self._with_feedback(spec.topology)})

    def _with_feedback(self, topology: Topology) -> Topology:
        """Return a topology whose NICs, each by half, make up for the difference to the usual feedback."""
        usual = topology.delays
        both_us = usual.mark_to_cnp_us + usual.cnp_to_cut_us + self.values["feedback_us"] - USUAL_FEEDBACK_US
        half_us = max(both_us, 0.0) / 2
        return topology.with_delays(Delays(mark_to_cnp_us=half_us, cnp_to_cut_us=half_us))

    def _with_values(self, transport: Transport) -> Transport:
        given = {
            name: value
            for name, value in transport.parameters.items()
            if name in KEPT or name not in self.published.parameters
        }
        fields: dict[str, Any] = {**given, "published": self.published, "ecn": None}
        own = {name: getattr(transport, name) for name in ("name", "file", "stands_for")}
        return Transport.model_construct(**fields, **own)

    @property
    def _own_parameters(self) -> dict[str, float | str]:
        fixed = {name: each.value for name, each in self.document.fixed.items()}
        return {**fixed, **{name: value for name, value in self.values.items() if name not in OF_TRIALS}}

    @cached_property
    def _declaration(self) -> Declaration:
        found = find_declaration(str(self.document.transport["name"]))
        assert found
        return found


def propose_candidates(document: Identification, points: int, seed: int) -> list[Candidate]:
    """Return the vendor's readings, those that depart in one, and `points` samples of all (a Latin hypercube)."""
    near = [Candidate(document, values) for values in _near(document)]
    names = list(document.readings)
    cube = qmc.LatinHypercube(len(names), seed=np.random.default_rng(seed)).random(points) if points else []
    return near + [
        Candidate(document, {name: _at(document, name, float(place)) for name, place in zip(names, point, strict=True)})
        for point in cube
    ]


def _near(document: Identification) -> Iterator[dict[str, float]]:
    usual = {name: each.default for name, each in document.readings.items()}
    yield usual
    for name, reading in document.readings.items():
        for value in (reading.values or ())[1:]:
            yield {**usual, name: value}


def _at(document: Identification, name: str, place: float) -> float:
    """Return the value at a place from 0 to 1: each value has as much room, and each part of a range."""
    reading = document.readings[name]
    if reading.values:
        return reading.values[min(int(place * len(reading.values)), len(reading.values) - 1)]
    assert reading.least is not None
    assert reading.most is not None
    return float(f"{reading.least + place * (reading.most - reading.least):.{DIGITS}g}")
