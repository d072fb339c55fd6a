# SPDX-License-Identifier: Apache-2.0
"""Plans of a lab: hosts and ports hold the planned values, at every scale and dilation, for every value."""

import math
import re
from typing import Any

import hypothesis
import pytest
from hypothesis import given, strategies as st

from roundabout.settings import settings
from roundabout.spec import Transport, load_experiment
from roundabout.spec.transports import Parameter, registry
from roundabout.spec.transports.sets import find_published, set_names
from roundabout.spec.trial_spec import TrialSpec
from roundabout.testbeds.lab import LabError
from roundabout.testbeds.lab.lifecycle.trial_settings import ecn_thresholds, settings_document
from roundabout.testbeds.lab.provider import LabProvider, create_provider

pytestmark = pytest.mark.unit

DECLARED = {name: found for name in registry.program_names() if (found := registry.find_declaration(name))}
FAIR = next(cell for cell in load_experiment("unfair-vgg19").cells if cell.variant == "fair").spec
# The program's own counts in one declared unit (transports/common/declarations.c).
KEPT = {"bytes/s": 125_000, "2^-24": 1 << 24}


def trial(transport: dict[str, Any]) -> TrialSpec:
    """Return `unfair-vgg19` with another transport for all its jobs."""
    using = {"transport": Transport.model_validate(transport)}
    return FAIR.model_copy(update={"jobs": {name: job.model_copy(update=using) for name, job in FAIR.jobs.items()}})


def held(parameter: Parameter, given: float | str) -> float | str:
    """Return the value of `transport get` after `transport set`, as transports/common/values.c has it."""
    if isinstance(given, str):
        return given
    value, one = float(repr(given)), KEPT.get(parameter.unit, 1)
    assert parameter.least <= value <= parameter.most
    return math.floor(value * one + 0.5) / one


@st.composite
def transports(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a transport, one of its sets or none, and some of its parameters within their range."""
    found = DECLARED[draw(st.sampled_from(sorted(DECLARED)))]
    numbers = [each for each in found.parameters if not each.names]
    given = {each.name: draw(within(each)) for each in draw(st.lists(st.sampled_from(numbers), max_size=4))}
    name = draw(st.sampled_from([None, *set_names(found)]))
    its_set = {"set": find_published(found, name)} if name else {}
    return {"name": found.name, "stands_for": found.stands_for, **its_set, **given}


def within(parameter: Parameter) -> st.SearchStrategy[float]:
    """Return a strategy of values in a parameter's range."""
    if parameter.is_whole:
        return st.integers(math.ceil(parameter.least), int(parameter.most))
    return st.floats(parameter.least, parameter.most)


@st.composite
def providers(draw: st.DrawFn) -> LabProvider:
    """Draw a lab at any scale, with time stretched or not."""
    scale = draw(st.one_of(st.floats(1, 100), st.floats(100, 1e5)))
    where = {"scale": repr(scale)}
    if draw(st.booleans()):
        where["dilation"] = repr(draw(st.one_of(st.just(min(scale, 17.4)), st.floats(1, min(100, scale)))))
    return create_provider(where)


REFUSED = r"[\w.]+: .* in this lab(, expected |; allowed is )|a port's queue of .*, expected "


@given(transport=transports(), labs=providers())
@hypothesis.settings(max_examples=40)
def test_hosts_and_ports_hold_the_planned_settings(transport: dict[str, Any], labs: LabProvider) -> None:
    spec = trial(transport)
    try:
        labs.check_trial(spec)
    except LabError as error:
        refusal = f"{error.message}\n{error.hint}"
        if not re.fullmatch(rf"({REFUSED}).*\nchoose .*--scale or --dilation", refusal):
            pytest.fail(refusal)
        return
    calibration = labs.calibration
    document = settings_document(spec, "s0", calibration, labs.dilation)
    settings.flatten(document)
    declared = {each.name: each for each in DECLARED[transport["name"]].parameters}
    planned = document["transport"][transport["name"]]
    assert planned == {name: held(declared[name], value) for name, value in planned.items()}
    ecn = ecn_thresholds(spec, calibration, calibration.scale / labs.dilation)
    assert math.floor(ecn.pmax * 65536) / 65536 == ecn.pmax


def test_times_of_whole_microseconds_are_stretched_to_whole_ones() -> None:
    """Plan the set hpcc at --dilation 17.4: hosts hold 17 us for 17.4 us."""
    spec, labs = (
        trial({"name": "dcqcn", "set": find_published(DECLARED["dcqcn"], "hpcc")}),
        create_provider({"dilation": "17.4"}),
    )
    planned = settings_document(spec, "s0", labs.calibration, 17.4)["transport"]["dcqcn"]
    assert (planned["T_us"], planned["alpha_timer_us"], planned["cnp_gap_us"]) == (5220, 17, 70)


def dcqcn(**given: Any) -> dict[str, Any]:
    """Return DCQCN with NVIDIA's set and the `given` parameters."""
    return {"name": "dcqcn", "stands_for": "RDMA", "set": find_published(DECLARED["dcqcn"], "nvidia"), **given}


@pytest.mark.parametrize(
    ("transport", "where", "message"),
    [
        (
            dcqcn(T_us=10**9),
            {"dilation": "17.4"},
            r"dcqcn.T_us: 1e\+09 is 1.74e\+10 in this lab; allowed is a whole number from 1 to 1e\+09",
        ),
        (
            dcqcn(byte_counter_bytes=8),
            {"scale": "100", "dilation": "2"},
            r"dcqcn.byte_counter_bytes: 8 is 0.16 in this lab; allowed is a whole number from 1 to 1e\+12",
        ),
        (
            dcqcn(R_min_mbps=40_000, R_max_mbps=10),
            {"dilation": "2"},
            r"dcqcn.R_min_mbps: found 400, with R_max_mbps 0.1 in this lab, expected R_min_mbps no higher",
        ),
        (
            dcqcn(ecn={"Kmin_bytes": 0, "Kmax_bytes": 10, "Pmax": 1e-6}),
            {"dilation": "2"},
            r"ecn.Pmax: found 1e-06, expected 0, or 1.53e-05 to 1",
        ),
        (dcqcn(), {"scale": "2", "dilation": "17.4"}, r"a lab at 1:2 cannot stretch time 17.4 times"),
        (dcqcn(), {"dilation": "4", "transport_dilation": "101"}, r"a lab at 1:100 cannot stretch time 101 times"),
        (
            {"name": "reno", "stands_for": "TCP"},
            {"dilation": "4", "transport_dilation": "16"},
            r"transport_dilation: found transport reno, expected one of NICs, such as dcqcn",
        ),
        (
            {"name": "mltcp_dcqcn", "stands_for": "RDMA", "gap_us": 50_000},
            {"dilation": "4", "transport_dilation": "16"},
            r"transport_dilation: found mltcp_dcqcn.gap_us, which is of a job",
        ),
    ],
)
def test_settings_that_a_lab_cannot_hold_are_refused_before_it_is_built(
    transport: dict[str, Any], where: dict[str, str], message: str
) -> None:
    with pytest.raises(LabError, match=message):
        create_provider(where).check_trial(trial(transport))
