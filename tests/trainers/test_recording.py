# SPDX-License-Identifier: Apache-2.0
"""A trainer's record of itself, with a stand-in for PyTorch's profiler."""

import base64
import gzip
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.trainers.host import load

pytestmark = pytest.mark.unit

recording = load("profiler_trace")


class Profiler:
    """Stops within its last step, as PyTorch's does, and notes that in `calls`."""

    def __init__(self, calls):
        self.calls = calls

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def step(self):
        self.calls.append("step")

    def export_chrome_trace(self, path):
        self.calls.append("export")
        Path(path).write_text("{}", encoding="utf-8")


@pytest.fixture
def calls(monkeypatch):
    found = []
    profiler = SimpleNamespace(schedule=lambda **_: None, profile=lambda **_: Profiler(found))
    kineto = SimpleNamespace(kineto_available=lambda: True)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(autograd=kineto, profiler=profiler))
    return found


def test_a_worker_announces_its_record_before_the_profiler_exports(calls):
    records = []

    def say(event, **fields):
        calls.append(event)
        records.extend(fields.values())

    with recording.recorded("kineto", 3, say) as ended:
        for _ in range(3):
            ended()
    assert calls == ["step", "step", "recording", "step", "export", "record"]
    assert gzip.decompress(base64.b64decode(records[-1])) == b"{}"


def test_a_worker_that_does_not_record_says_nothing(calls):
    with recording.recorded(None, 3, calls.append) as ended:
        ended()
    assert calls == []
