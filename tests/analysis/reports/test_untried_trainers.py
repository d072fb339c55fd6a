# SPDX-License-Identifier: Apache-2.0
"""A report says of trainers' ways that this project never ran that it never did."""

from types import SimpleNamespace
from typing import Any

import pytest

from analysis.reading import fidelity as reading
from roundabout.spec.trainers import MODELS

pytestmark = pytest.mark.unit


def said_of(trainer: dict[str, Any], nature: str, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    job = SimpleNamespace(trainer=MODELS[trainer["name"]].model_validate(trainer))
    cell = SimpleNamespace(spec=SimpleNamespace(jobs={"j1": job, "j2": job}, topology=SimpleNamespace(is_tree=True)))
    monkeypatch.setattr(reading, "experiment_of", lambda _run: SimpleNamespace(cells=[cell]))
    testbed = {"fidelity": {"nature": nature, "stamp": "", "about": "", "cannot": ["PFC"]}}
    run: Any = SimpleNamespace(manifest={"testbed": testbed}, trials=list)
    return reading.fidelity_of(run).cannot


@pytest.mark.parametrize(
    ("trainer", "nature", "never"),
    [
        ({"name": "replay"}, "real", None),
        ({"name": "ddp"}, "emulated", None),
        ({"name": "horovod", "backend": "gloo"}, "real", None),
        ({"name": "ddp"}, "real", "ddp over nccl"),
        ({"name": "deepspeed", "backend": "nccl"}, "emulated", "deepspeed over nccl"),
        ({"name": "dlrm", "model": "DLRM"}, "emulated", "dlrm over gloo with DLRM"),
        ({"name": "dlrm", "model": "DLRM"}, "computed", None),
    ],
)
def test_an_untried_trainer_is_named_once_among_limitations(trainer, nature, never, monkeypatch):
    first, *rest = said_of(trainer, nature, monkeypatch)
    assert first == "PFC"
    assert rest == ([f"{never}: never run by this project on any testbed"] if never else [])
