# SPDX-License-Identifier: Apache-2.0
"""Identification: candidates are played and held against printed figures, and what is stored is what was found."""

import json
from pathlib import Path
from typing import Any

import pytest

from analysis.calibration import identification, identified_set
from analysis.calibration.candidates import Candidate, propose_candidates
from analysis.calibration.identification import NothingFitsError, Observation
from analysis.calibration.identified_predictions import predict_figures, split_by_support
from roundabout import build_experiment
from roundabout.cli.main import main
from roundabout.spec import SpecError
from roundabout.spec.transports import identification as documents, registry, sets
from roundabout.spec.transports.identification import (
    FOLDER,
    Identification,
    identification_names,
    read_identification,
)
from roundabout.spec.transports.sets import read_set, set_path
from tests.two_phases import two_phases

pytestmark = pytest.mark.unit

DCQCN = registry.find_declaration("dcqcn") or pytest.fail("none")
PROFILE = two_phases(20, 60_000_000, 15)
JOBS = {"j1": {"profile": "small", "workers": ["s0", "s2"]}, "j2": {"profile": "small", "workers": ["s1", "s3"]}}
VARIANTS = {"fair": {}, "unfair": {"jobs": {"j1": {"transport": {"T_us": 60}}}}}
TRIALS = {
    "topology": "dumbbell-2x2",
    "profiles": {"small": PROFILE},
    "jobs": {name: {**job, "jitter": 0} for name, job in JOBS.items()},
    "iterations": 1,
    "transport": {"name": "dcqcn", "set": "nvidia", "T_us": 125},
    "factors": {"variant": VARIANTS},
}
SHARE = "first-iteration bandwidth share j1/j2"
SMALL: dict[str, Any] = {
    "name": "hotnets/small",
    "about": "Two jobs in miniature",
    "source": "HotNets'22, Figures 1b and 1c",
    "set": "small",
    "looks_at": [
        {"what": "first-iteration bandwidth", "of": "fair", "paper": "hotnets/fig-1b", "within": 0.1},
        {"what": SHARE, "of": "unfair", "paper": "hotnets/fig-1c/share", "tolerance": 0.8},
    ],
    "trials": TRIALS,
    "fixed": {"T_us": {"value": 125, "source": "here"}},
    "thresholds": {"Kmin_cells": 1000, "Kmax_cells": 2000, "source": "here"},
    "readings": {
        "byte_counter_bytes": {"values": [32767, 0], "guess": "any"},
        "cell_bytes": {"values": [80, 176], "guess": "any"},
        "flows": {"values": [1, 2], "guess": "any"},
        "Pmax": {"values": [1, 0.2], "source": "any"},
        "feedback_us": {"least": 4, "usual": 8, "most": 16, "guess": "any"},
    },
    "points": 0,
    "seeds": [1],
}


@pytest.fixture(scope="module")
def small() -> Identification:
    return Identification.model_validate(SMALL)


def observed(document: Identification, fair: float, share: float, **values: float) -> Observation:
    usual = {name: each.default for name, each in document.readings.items()}
    rates = {"fair": {"j1": fair, "j2": fair}, "unfair": {"j1": 15 * share, "j2": 15.0}}
    return Observation(Candidate(document, {**usual, **values}), rates)


@pytest.mark.parametrize("name", identification_names())
def test_what_is_stored_is_what_its_document_says(name: str) -> None:
    document = read_identification(name)
    record = json.loads(identification.accepted_path(document, FOLDER).read_text())
    without = {key: value for key, value in record.items() if key != "hash"}
    assert record["hash"] == identification.hash_content(without)
    assert record["document"] == identification.hash_content(document.model_dump(mode="json"))
    assert record["looked_at"] == identification.looked_at(document)
    accepted = identification.read_accepted(document, record)
    assert all(each.fits for each in accepted)
    assert [each.rank for each in accepted] == sorted(each.rank for each in accepted)
    assert record["representative"] == accepted[0].candidate.values
    assert len(accepted) + sum(record["rejected_by"].values()) == record["candidates"]


@pytest.mark.parametrize("name", identification_names())
def test_a_set_is_what_the_stored_identification_says(name: str) -> None:
    document = read_identification(name)
    record = json.loads(identification.accepted_path(document, FOLDER).read_text())
    assert set_path(DCQCN, document.set_name).read_text() == identified_set.set_text(document, record)
    kept, candidate = read_set(DCQCN, document.set_name), Candidate(document, record["representative"])
    assert {each for each, figure in kept.parameters.items() if figure.identified} == {
        each for each in candidate.departures if each in kept.parameters
    }
    assert {each: figure.value for each, figure in kept.parameters.items()} == candidate.published.parameters
    assert kept.ecn.Kmin_bytes.value == candidate.ecn.Kmin_bytes


def test_the_first_candidates_are_the_vendors_and_those_next_to_it(small: Identification) -> None:
    found = propose_candidates(small, 20, 1)
    names = ("byte_counter_bytes", "cell_bytes", "flows", "Pmax")
    assert [each.departures for each in found[:5]] == [(), *((name,) for name in names)]
    assert [each.values for each in found] == [each.values for each in propose_candidates(small, 20, 1)]
    sampled = [each.values["feedback_us"] for each in found[5:]]
    assert 4 <= min(sampled) < 5
    assert 15 < max(sampled) <= 16
    assert {each.values["flows"] for each in found[5:]} == {1, 2}


def test_a_candidate_fits_if_every_figure_is_within_its_tolerance(small: Identification) -> None:
    assert observed(small, 21, 2.0).fits
    assert observed(small, 21, 2.0).misfit == pytest.approx(0)
    assert observed(small, 21 * 1.099, 2.79).fits
    assert not observed(small, 21 * 1.101, 2.0).fits
    assert not observed(small, 21, 2.81).fits
    assert not observed(small, float("nan"), 2.0).fits
    missing = Observation(observed(small, 21, 2).candidate, {"fair": {"j1": 21.0, "j2": 21.0}})
    assert (missing.fits, missing.misfit) == (False, None)


def test_the_representative_departs_least_and_not_fits_best(small: Identification) -> None:
    best = observed(small, 21, 2.0, byte_counter_bytes=0, flows=2)
    near = observed(small, 21.5, 2.5, byte_counter_bytes=0)
    far = observed(small, 21, 2.0, byte_counter_bytes=0, feedback_us=9)
    record = identification.identify(small, [best, far, near, observed(small, 16, 2.0)], 1)
    assert record["representative"] == near.candidate.values
    assert [each["readings"] for each in record["accepted"]] == [each.candidate.values for each in (near, far, best)]
    assert (record["candidates"], record["rejected_by"]) == (4, {"fair": 0, "unfair": 1})
    assert json.loads(identification.format_record(record)) == record
    with pytest.raises(NothingFitsError, match="None of 1 candidates fits hotnets/small"):
        identification.identify(small, [observed(small, 16, 2.0)], 1)


def test_candidates_are_played_beside_each_other(small: Identification) -> None:
    reported: list[tuple[int, int]] = []
    candidates = propose_candidates(small, 0, 1)[:2]
    found = identification.observe_all(small, candidates, 2, lambda played, fits: reported.append((played, fits)))
    assert [each.candidate for each in found] == candidates
    assert reported[-1] == (2, sum(each.fits for each in found))
    assert all(sum(each.rates["fair"].values()) == pytest.approx(41.5, abs=1.6) for each in found)
    assert found[1].rates["unfair"]["j1"] > 1.2 * found[1].rates["unfair"]["j2"]


def test_a_candidate_changes_all_but_t(small: Identification) -> None:
    values = {"byte_counter_bytes": 0.0, "flows": 2.0, "cell_bytes": 176.0, "Pmax": 0.2, "feedback_us": 5.0}
    candidate = Candidate(small, values)
    spec = candidate.applied_to(identification.trials_of(small)["unfair"])
    transport = spec.jobs["j1"].transport
    assert (
        transport.requested["T_us"],
        transport.requested["byte_counter_bytes"],
        transport.requested["R_AI_mbps"],
    ) == (60, 0, 5)
    assert transport.thresholds is not None
    assert (transport.thresholds.Kmin_bytes, transport.thresholds.Pmax, spec.jobs["j1"].flows) == (176_000, 0.2, 2)
    assert (spec.topology.delays.mark_to_cnp_us, spec.topology.delays.cnp_to_cut_us) == (1, 1)


def test_figures_are_predicted_over_what_was_accepted(small: Identification) -> None:
    fields = {**TRIALS, "name": "one", "about": "one", "jobs": JOBS, "iterations": 50}
    expect = [{"what": SHARE, "of": "unfair", "paper": 2.0, "tolerance": 0.5, "basis": "fitted", "source": "any"}]
    fields["factors"] = {"variant": {"alone": {"one_job_at_a_time": True}, **VARIANTS}}
    experiment = build_experiment({**fields, "expect": expect})
    known, left_out = split_by_support(experiment.cells)
    assert [[each.variant for each in some] for some in (known, left_out)] == [["fair", "unfair"], ["alone"]]
    accepted = [observed(small, 21, 2.0, byte_counter_bytes=0), observed(small, 21, 2.0)]
    parts: list[float] = []
    found = {
        (each.cell.variant, each.what, each.case): each
        for each in predict_figures(experiment, known, accepted, 4, 2, parts.append)
    }
    share = found["unfair", SHARE, "j1/j2"]
    assert share.printed == 2.0
    assert len(share.values) == 2
    assert min(share.values) > 1.1
    assert share.holds == (min(share.values) <= 2 <= max(share.values))
    fair = found["fair", "mean iteration time", "j1"]
    assert fair.values == pytest.approx([20 + 2 * 60 * 8 / 43] * 2, abs=1.5)
    assert found["unfair", "end of the first iteration", "j1"].values[0] < fair.values[0] / 1e3
    assert parts[-1] == 1


def test_what_fits_is_shown_and_stored_on_the_command_line(
    small: Identification, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(documents, "read_identification", lambda _name: small)
    monkeypatch.setattr(documents, "FOLDER", tmp_path)
    written = tmp_path / "small.yaml"
    monkeypatch.setattr(sets, "set_path", lambda *which: written if which[1] == "small" else set_path(*which))
    (tmp_path / "hotnets").mkdir()
    assert main(["identify", "hotnets/small", "--write", "--jobs", "2"]) == 0
    reported = capsys.readouterr()
    record = json.loads((tmp_path / "hotnets/small.accepted.json").read_text())
    assert f"{len(record['accepted'])} of 5 candidates fit" in reported.out
    assert "playing 5 candidates: 100 %" in reported.err
    assert written.read_text() == identified_set.set_text(small, record)


def test_it_is_predicted_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "one.yaml"
    path.write_text(json.dumps({**TRIALS, "name": "one", "about": "one", "jobs": JOBS}))
    words = ["predict", str(path), "--identified", "hotnets/fig-1", "--candidates", "2", "--iterations", "3"]
    assert main([*words, "--json", "--only", "unfair"]) == 0
    figures = json.loads(capsys.readouterr().out)
    (share,) = (each for each in figures if each["what"] == SHARE)
    assert share["least"] <= share["median"] <= share["most"]
    assert len(share["values"]) == 2
    assert main([*words, "--beside", "last"]) == 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("name: hotnets/fig-1", "name: hotnets/fig-2", "name: found 'hotnets/fig-2', expected 'hotnets/fig-1'"),
        (
            "  hyper_by_stage:",
            "  hyper_by_stages:",
            "readings.hyper_by_stages: found 'hyper_by_stages', expected one of",
        ),
        ("    most: 16", "    most: 7", "readings.feedback_us: .*expected least below most"),
        ("    usual: 8\n", "", "readings.feedback_us: .*expected `values`, or"),
        ("set: nvidia, ", "", "trials: found a transport without name and set"),
        ("tolerance: 0.15", "tolerance: 0.15, within: 0.1", "looks_at.*expected one of `tolerance` and `within`"),
    ],
)
def test_a_fault_of_a_document_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = (FOLDER / "hotnets/fig-1.yaml").read_text()
    assert old in text
    (tmp_path / "hotnets").mkdir()
    (tmp_path / "hotnets/fig-1.yaml").write_text(text.replace(old, new, 1))
    with pytest.raises(SpecError, match=message):
        read_identification("hotnets/fig-1", tmp_path)


def test_an_unknown_identification_is_named() -> None:
    with pytest.raises(SpecError, match="found no identification 'hotnets/fig-7', expected one of hotnets/fig-1"):
        read_identification("hotnets/fig-7")
