# SPDX-License-Identifier: Apache-2.0
"""A trace in a file: what is wrong is said of the field as it is written, whichever kind of trace it is."""

import pytest

from roundabout.spec import SpecError
from roundabout.spec.assembly.validation_errors import parse_as
from roundabout.spec.base import Strict
from roundabout.spec.reader.yaml_source import parse
from roundabout.spec.trace import KINDS, Trace

pytestmark = pytest.mark.unit


class Holder(Strict):
    """Something with a trace."""

    trace: Trace


def said(text):
    with pytest.raises(SpecError) as raised:
        parse_as(Holder, parse(text, "f.yaml"))
    return raised.value


def test_each_trace_kind_is_registered_by_its_kind_field():
    assert {name: kind.model_fields["kind"].annotation.__args__ for name, kind in KINDS.items()} == {
        name: (name,) for name in KINDS
    }


@pytest.mark.parametrize(
    ("text", "field", "found"),
    [
        ("trace: {kind: poisson, load: 0, jobs: 3}", "trace.load", "0"),
        ("trace: {kind: snapshot, jobs: [{model: BERT, batch: 0}]}", "trace.jobs[0].batch", "0"),
        ("trace: {kind: lingjun}", "trace.file", "nothing"),
        ("trace: {kind: poisson, load: 0.9}", "trace", "a mapping of 2"),
        ("trace: {kind: burst}", "trace.kind", "'burst'"),
    ],
)
def test_a_fault_in_a_trace_is_named_with_its_field(text, field, found):
    error = said(text)
    assert (error.field, error.found, error.line) == (field, found, 1)


def test_an_unknown_field_is_said_with_those_of_its_kind():
    error = said("trace: {kind: poisson, lode: 0.9, jobs: 3}")
    assert (error.field, error.hint) == ("trace.lode", "did you mean load or models?")
    error = said("trace: {kind: snapshot, jobs: [{models: BERT}]}")
    assert (error.field, error.hint) == ("trace.jobs[0].models", "did you mean model?")
    error = said("trace: {kind: philly, file: log, workers: {minimum: 1, most: 3}}")
    assert error.expected == "one of least, most"
