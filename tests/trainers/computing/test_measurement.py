# SPDX-License-Identifier: Apache-2.0
"""The program that measures computing on a GPU: what it measures, and how it goes on."""

from types import SimpleNamespace

import pytest

from tests.trainers.host import COMPUTING, load

pytestmark = pytest.mark.unit

measurement = load("measurement", COMPUTING)


def test_a_batch_is_halved_until_it_fits(monkeypatch):
    tried = []

    def measure(torch, case, batch, precision, options):
        tried.append(batch)
        if batch > 3:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return {"batch": batch}

    monkeypatch.setattr(measurement, "measure", measure)
    options = SimpleNamespace(device="cpu")
    assert measurement.measure_fitting(None, {"batch": 12}, "fp32", options) == {"batch": 3}
    assert tried == [12, 6, 3]


@pytest.mark.parametrize(("batch", "message"), [(1, "CUDA out of memory"), (8, "an illegal memory access")])
def test_another_failure_or_one_example_that_does_not_fit_is_raised(monkeypatch, batch, message):
    def measure(torch, case, batch, precision, options):
        raise RuntimeError(message)

    monkeypatch.setattr(measurement, "measure", measure)
    with pytest.raises(RuntimeError, match=message):
        measurement.measure_fitting(None, {"batch": batch}, "fp32", SimpleNamespace(device="cpu"))


def test_cases_are_chosen_by_set_and_by_model():
    plan = [{"set": "a", "model": "x"}, {"set": "b", "model": "y"}, {"set": "b", "model": "z"}]
    chosen = measurement.chosen(plan, SimpleNamespace(only=["x", "b"], precision=["tf32", "fp32"]))
    assert [(case["model"], precision) for case, precision in chosen] == [
        (name, precision) for name in "xyz" for precision in ("tf32", "fp32")
    ]


def test_a_spread_has_median_least_and_most():
    assert measurement.spread([3.0, 1.0, 2.00004]) == {"median": 2.0, "min": 1.0, "max": 3.0}
