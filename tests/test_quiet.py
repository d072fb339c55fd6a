# SPDX-License-Identifier: Apache-2.0
"""A test that needs a quiet machine neither fails for the noise of others nor hides what is broken."""

from pathlib import Path

import pytest

from tests import quiet

pytest_plugins = ["pytester"]

CONFTEST = """
from tests.conftest import pytest_runtest_protocol
from tests import quiet
{noise}
quiet.PATIENCE_S = quiet.LOOK_S = 0
def pytest_configure(config):
    config.addinivalue_line("markers", "quiet: ...")
"""
TEST = """
import pytest
tries = []
@pytest.mark.quiet
def test_it(tmp_path):
    tries.append(tmp_path)
    assert len(tries) > {failures}
"""


@pytest.mark.parametrize(
    ("noise", "failures", "outcome"),
    [
        ("quiet.others = lambda: ''", 0, {"passed": 1}),
        ("quiet.others = lambda: ''; quiet.STEAL_MAX = 2", 1, {"failed": 1}),
        ("quiet.others = lambda: 'others took 99 %'", 1, {"passed": 1}),
        ("quiet.others = lambda: 'others took 99 %'", 9, {"skipped": 1}),
        ("quiet.others = lambda: ''; quiet.STEAL_MAX = -1", 9, {"skipped": 1}),
    ],
)
def test_only_a_failure_on_a_quiet_machine_is_one(pytester, monkeypatch, noise, failures, outcome):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    pytester.makeconftest(CONFTEST.format(noise=noise))
    pytester.makepyfile(TEST.format(failures=failures))
    done = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-rs")
    done.assert_outcomes(**outcome)
    if "skipped" in outcome:
        done.stdout.fnmatch_lines(["*the last one: AssertionError: assert 3 > 9"])


def test_what_no_noise_makes_is_a_failure(pytester, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    pytester.makeconftest(CONFTEST.format(noise="quiet.others = lambda: 'others took 99 %'"))
    pytester.makepyfile("import pytest\n@pytest.mark.quiet\ndef test_it():\n    open('/proc/none')")
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(failed=1)


def test_what_others_do_is_seen():
    assert quiet.Cpu(busy=50, steal=1, all=100).since(quiet.Cpu(busy=0, steal=0, all=0)) == (0.5, 0.01)
