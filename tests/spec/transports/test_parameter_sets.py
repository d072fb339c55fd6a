# SPDX-License-Identifier: Apache-2.0
"""Published sets of parameters: each value has an origin, and whatever is wrong is named with its file and field."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from roundabout.spec import SpecError, Transport
from roundabout.spec.transports import registry
from roundabout.spec.transports.sets import find_published, read_set, set_names
from tests.spec.transports.minimal_experiment import transport_of

pytestmark = pytest.mark.unit

DCQCN = registry.find_declaration("dcqcn") or pytest.fail("none")


@pytest.mark.parametrize("name", set_names(DCQCN))
def test_every_set_that_ships_is_whole_and_an_experiment_gets_its_values(name: str, tmp_path: Path) -> None:
    found, kept = transport_of(tmp_path, f"{{name: dcqcn, set: {name}}}"), read_set(DCQCN, name)
    assert found.requested == {each: figure.value for each, figure in kept.parameters.items()}
    assert found.thresholds is not None
    assert found.thresholds.Kmax_bytes == kept.ecn.Kmax_bytes.value
    assert set(kept.guesses) < {*kept.parameters, "Kmin_bytes", "Kmax_bytes", "Pmax"}
    assert Transport.model_validate_json(found.model_dump_json()) == found


def test_an_experiments_parameters_override_its_set(tmp_path: Path) -> None:
    ecn = "{Kmin_bytes: 1, Kmax_bytes: 2, Pmax: 0.5}"
    found = transport_of(tmp_path, f"{{name: dcqcn, set: sigcomm15, T_us: 100, ecn: {ecn}}}")
    assert (found.parameters, found.requested["T_us"], found.requested["F"]) == ({"T_us": 100}, 100, 5)
    assert found.thresholds is not None
    assert found.thresholds.Kmax_bytes == 2


@pytest.mark.parametrize(
    ("name", "clamps"),
    [("sigcomm15", 1), ("conext16", 1), ("hpcc", 0), ("hpcc-config", 0), ("hpcc-paper", 0), ("nvidia", 0)],
)
def test_each_set_has_the_rule_of_its_source(name: str, clamps: int) -> None:
    assert find_published(DCQCN, name).parameters["clamp_target"] == clamps


def test_a_set_that_is_older_than_the_rule_stands_for_the_former_one() -> None:
    values = find_published(DCQCN, "nvidia")
    older = {key: value for key, value in values.parameters.items() if key != "clamp_target"}
    stored = {"name": "dcqcn", "stands_for": "RDMA", "set": {**values.model_dump(), "parameters": older}}
    found = Transport.model_validate(stored)
    (rule,) = (each for each in DCQCN.parameters if each.name == "clamp_target")
    assert found.fallback(rule) == 1
    assert found.model_dump() == {**stored, "file": None}
    assert Transport.model_validate({**stored, "set": None}).fallback(rule) == 0  # the vendor's default


def test_a_set_file_may_be_older_than_a_parameter(tmp_path: Path) -> None:
    text = (DCQCN.program.parent / "sets/hpcc.yaml").read_text().replace("name: hpcc", "name: mine")
    (tmp_path / "sets").mkdir()
    lines = [line for line in text.splitlines() if "clamp_target" not in line]
    (tmp_path / "sets/mine.yaml").write_text("\n".join(lines))
    here = replace(
        DCQCN,
        program=tmp_path / "dcqcn.bpf.c",
        parameters=tuple(replace(each, home=tmp_path) for each in DCQCN.parameters),
    )
    assert "clamp_target" not in find_published(here, "mine").parameters


def test_without_a_set_nothing_is_stored_that_was_not_before(tmp_path: Path) -> None:
    found = transport_of(tmp_path, "{name: dcqcn}")
    assert found.model_dump() == {"name": "dcqcn", "file": None, "stands_for": "RDMA", "T_us": 125}


@pytest.mark.parametrize(
    ("transport", "message"),
    [
        ("{name: dcqcn, set: sigcom15}", r"transport.set: found 'sigcom15', expected one of conext16, .*sigcomm15"),
        ("{name: dcqcn, set: 5}", r"transport.set: found 5, expected one of conext16"),
        ("{name: cubic, set: sigcomm15}", r"transport.set: found 'sigcomm15', expected no set: cubic has none"),
        (
            "{name: dcqcn, set: sigcomm15, R_max_mbps: 50}",
            r"transport.R_max_mbps: found 100, with R_max_mbps 50, expected R_min",
        ),
        ("{name: dcqcn, ecn: {Kmin_bytes: 1, Kmax_bytes: 2}}", r"transport.ecn.Pmax: found nothing, expected a value"),
        ("{name: dcqcn, ecn: {Kmin_bytes: 3, Kmax_bytes: 2, Pmax: 1}}", r"transport.ecn: found .*Kmin_bytes no higher"),
    ],
)
def test_a_wrong_transport_of_an_experiment_is_named(tmp_path: Path, transport: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        transport_of(tmp_path, transport)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "T_us: {value: 55",
            "T_us: {value: 0",
            r"mine.yaml:\d+: parameters.T_us.value: found 0.0, expected a number from 1",
        ),
        ("  F: {value: 5", "  F: {value: 5.5", r"parameters.F.value: found 5.5, expected a whole number from 1"),
        ("  F:", "  f:", r"parameters.f: found 'f', expected one of T_us, F"),
        ("  g: {", "  #", r"parameters: found no g, expected every parameter"),
        ("  Pmax: {value: 0.01", "  Pmax: {value: 2", r"ecn: found Kmin 5000, Kmax 200000, Pmax 2, expected"),
        ('guess: "not printed; mix', 'guess_: "not printed; mix', r"R_HAI_mbps.guess_: found the unknown field"),
        ('source: "SIGCOMM\'15, parameters of its testbed"', "note: x", r"byte_counter_bytes.note: found the unknown"),
        (
            'source: "SIGCOMM\'15, equation 1: R_T = R_C at every CNP"',
            'source: x, identified: "Figure 1"',
            r"clamp_target: .*expected exactly one of source .* guess .* and identified",
        ),
        ("name: mine", "name: other", r"mine.yaml:\d+: name: found 'other', expected 'mine'"),
    ],
)
def test_a_fault_in_a_parameter_set_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    program = tmp_path / "dcqcn.bpf.c"
    for path in (DCQCN.program, DCQCN.program.with_name("dcqcn_params.h")):
        shutil.copy(path, tmp_path)
    (tmp_path / "sets").mkdir()
    text = (DCQCN.program.parent / "sets/sigcomm15.yaml").read_text().replace("name: sigcomm15", "name: mine")
    assert old in text
    (tmp_path / "sets/mine.yaml").write_text(text.replace(old, new, 1))
    parameters = tuple(replace(each, home=tmp_path) for each in DCQCN.parameters)
    here = replace(DCQCN, program=program, parameters=parameters)
    with pytest.raises(SpecError, match=message):
        find_published(here, "mine")


def test_a_transport_that_varies_another_has_its_sets() -> None:
    varied, without = (registry.find_declaration(name) or pytest.fail(name) for name in ("mltcp_dcqcn", "mltcp_reno"))
    assert set_names(varied) == set_names(DCQCN)
    assert find_published(varied, "hpcc-paper") == find_published(DCQCN, "hpcc-paper")
    with pytest.raises(SpecError, match="mltcp_reno has no sets"):
        find_published(without, "hpcc-paper")


def test_a_name_of_a_set_must_be_one_of_the_parameters(tmp_path: Path) -> None:
    text = (DCQCN.program.parent / "sets/hpcc.yaml").read_text().replace("name: hpcc", "name: mine")
    (tmp_path / "sets").mkdir()
    parameters = tuple(replace(each, home=tmp_path) for each in DCQCN.parameters)
    here = replace(DCQCN, program=tmp_path / "dcqcn.bpf.c", parameters=parameters)
    for old, new, message in (
        (
            "cnp_scope: {value: qp",
            "cnp_scope: {value: flow",
            r"cnp_scope.value: found 'flow', expected one of qp, host",
        ),
        ("F: {value: 2", "F: {value: two", r"parameters.F.value: found 'two', expected a number"),
    ):
        assert old in text
        (tmp_path / "sets/mine.yaml").write_text(text.replace(old, new))
        with pytest.raises(SpecError, match=message):
            find_published(here, "mine")
