# SPDX-License-Identifier: Apache-2.0
"""Identification of a transport's unknown parameters: candidates are played packet by packet and held against figures.

Only the figures that the document names are looked at. What fits is stored with hashes of all that decided it.
"""

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from threading import Event
from typing import Any

from analysis.calibration.candidates import Candidate
from analysis.calibration.parallel_plays import play_all
from analysis.papers import find_printed
from roundabout.core.errors import RoundaboutError
from roundabout.core.paths import ROOT
from roundabout.models.packets import Fabric
from roundabout.models.packets.first_iteration import first_bandwidths
from roundabout.spec import TrialSpec
from roundabout.spec.loader import build_experiment
from roundabout.spec.transports.identification import BANDWIDTH, Identification, Measurement

SCHEMA = 1

DECIMALS = 2
"""Of rates in Gbit/s, so that what is stored is what was compared."""

Rates = Mapping[str, float]
"""Rates of jobs, in Gbit/s, by name."""

ENGINE = ("roundabout/models/packets", "transports/dcqcn", "transports/common")
"""Folders with the sources that decide what the packet-level model computes for DCQCN."""
SOURCES = (".py", ".c", ".h", ".cpp", ".hpp")


class NothingFitsError(RoundaboutError):
    """No candidate of an identification fits its measurements."""


@dataclass(frozen=True)
class Observation:
    """The rates of one candidate's jobs by variant, means of the seeds. Later variants are missing if one misses."""

    candidate: Candidate
    rates: Mapping[str, Rates]

    @property
    def fits(self) -> bool:
        """Return True if every measurement is met within its tolerance."""
        looked = self.candidate.document.looks_at
        return all(each.of in self.rates and is_met(each, self.rates[each.of]) for each in looked)

    @property
    def misfit(self) -> float | None:
        """Return the root mean square of the deviations in their tolerances; None if a variant was not played."""
        if any(each not in self.rates for each in self.candidate.document.variants):
            return None
        compared = (compare(each, self.rates[each.of]) for each in self.candidate.document.looks_at)
        return math.sqrt(fmean(((found - value) / allowed) ** 2 for each in compared for found, value, allowed in each))

    @property
    def rank(self) -> tuple[int, float, float]:
        """Return the order among fitting ones: nearest to the vendor's values first, then the smallest misfit."""
        return len(self.candidate.departures), self.candidate.distance, self.misfit or 0.0

    def record(self) -> dict[str, Any]:
        """Return the values and the rates as JSON-compatible values."""
        rates = {variant: dict(found) for variant, found in self.rates.items()}
        return {"readings": dict(self.candidate.values), "gbps": rates}


def is_met(measurement: Measurement, rates: Rates) -> bool:
    """Return True if each figure of a measurement is met within its tolerance. Rates of NaN meet none."""
    return all(abs(found - printed) <= allowed for found, printed, allowed in compare(measurement, rates))


def compare(measurement: Measurement, rates: Rates) -> list[tuple[float, float, float]]:
    """Return what was found, what is printed, and the difference that is allowed, for each figure of a measurement."""
    printed = find_printed(measurement.paper).entry.figures
    if measurement.what == BANDWIDTH:
        assert isinstance(printed, Mapping)
        pairs = [(rates[job], float(value)) for job, value in printed.items()]
    else:
        assert isinstance(printed, float | int)
        one, other = list(rates.values())[:2]
        pairs = [(one / other, float(printed))]
    return [(found, value, measurement.tolerance or (measurement.within or 0.0) * value) for found, value in pairs]


def trials_of(document: Identification) -> dict[str, TrialSpec]:
    """Return the trials that are looked at, by variant. Raises SpecError if `trials` is no experiment."""
    fields = {"name": document.name.replace("/", "-"), "about": document.about, **document.trials}
    found = {cell.variant: cell.spec for cell in build_experiment(fields).cells}
    missing = [each for each in document.variants if each not in found]
    if missing:
        raise RoundaboutError(
            f"{document.name}: found no variant {missing[0]}, expected one of {', '.join(found)}",
            "name another in `of`",
        )
    return {each: found[each] for each in document.variants}


def observe(candidate: Candidate, trials: Mapping[str, TrialSpec], stopped: Event) -> Observation:
    """Play a candidate's variants until one misses its measurements."""
    rates: dict[str, Rates] = {}
    for variant, spec in trials.items():
        each = [
            first_bandwidths(candidate.applied_to(spec), seed, Fabric(), stopped.is_set)
            for seed in candidate.document.seeds
        ]
        rates[variant] = {job: round(fmean(found[job] for found in each), DECIMALS) for job in each[0]}
        if not all(is_met(one, rates[variant]) for one in candidate.document.looks_at if one.of == variant):
            break
    return Observation(candidate, rates)


def observe_all(
    document: Identification,
    candidates: Sequence[Candidate],
    processors: int | None,
    progress: Callable[[int, int], None] = lambda _played, _fitting: None,
) -> list[Observation]:
    """Play all candidates, `processors` of them at once; as many as the machine has, if None.

    `progress` receives the numbers of played and of fitting candidates.
    """
    trials, fitting = trials_of(document), 0

    def show_count(ended: list[Observation], left: int) -> None:
        nonlocal fitting
        fitting += sum(each.fits for each in ended)
        progress(len(candidates) - left, fitting)

    return play_all([partial(observe, each, trials) for each in candidates], processors, show_count)


def identify(document: Identification, observations: Sequence[Observation], seed: int) -> dict[str, Any]:
    """Return the record of an identification: what fits, the representative, and hashes of what decided it.

    Raises NothingFitsError.
    """
    fitting = sorted((each for each in observations if each.fits), key=lambda each: each.rank)
    if not fitting:
        raise NothingFitsError(
            f"None of {len(observations)} candidates fits {document.name}.", "try more --points, or other readings"
        )
    record = {
        "schema": SCHEMA,
        "name": document.name,
        "looked_at": looked_at(document),
        "document": hash_content(document.model_dump(mode="json")),
        "engine": hash_engine(),
        "seed": seed,
        "candidates": len(observations),
        "rejected_by": {
            variant: sum(not each.fits and list(each.rates)[-1] == variant for each in observations)
            for variant in document.variants
        },
        "representative": dict(fitting[0].candidate.values),
        "accepted": [each.record() for each in fitting],
    }
    return {**record, "hash": hash_content(record)}


def looked_at(document: Identification) -> dict[str, Any]:
    """Return the printed figures that an identification looks at, by name."""
    return {each.paper: find_printed(each.paper).entry.figures for each in document.looks_at}


def accepted_path(document: Identification, folder: Path) -> Path:
    """Return the file of what was identified, beside the document."""
    return folder / f"{document.name}.accepted.json"


def read_accepted(document: Identification, record: Mapping[str, Any]) -> list[Observation]:
    """Return the candidates of a stored identification, the representative first."""
    return [Observation(Candidate(document, each["readings"]), each["gbps"]) for each in record["accepted"]]


def format_record(record: Mapping[str, Any]) -> str:
    """Return the text of a stored identification: one accepted candidate a line."""
    head = {name: value for name, value in record.items() if name != "accepted"}
    lines = ",\n".join(f"    {json.dumps(each)}" for each in record["accepted"])
    text = json.dumps(head, indent=2).removesuffix("\n}")
    return f'{text},\n  "accepted": [\n{lines}\n  ]\n}}\n'


def hash_content(content: Any) -> str:
    """Return the SHA-256 of JSON-compatible values, whatever the order of their names."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def hash_engine() -> str:
    """Return the SHA-256 of the sources of the packet-level model and of DCQCN."""
    found = hashlib.sha256()
    for folder in ENGINE:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in SOURCES:
                found.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return found.hexdigest()


def choose_spread(accepted: Sequence[Observation], most: int) -> list[Observation]:
    """Return the representative and others at equal distances in the order of rank, `most` of them at most."""
    if len(accepted) <= most:
        return list(accepted)
    places = {round(number * (len(accepted) - 1) / max(most - 1, 1)) for number in range(most)}
    return [accepted[place] for place in sorted(places)]
