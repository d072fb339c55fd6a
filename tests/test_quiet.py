# SPDX-License-Identifier: Apache-2.0
"""A test that needs a quiet machine neither fails because of noise nor hides a fault."""

from pathlib import Path

import pytest

from tests import conftest, quiet

pytestmark = pytest.mark.unit
pytest_plugins = ["pytester"]

CONFTEST = """
from tests.conftest import *
from tests import quiet
del pytest_runtestloop  # these tests need no lease of the machine
{noise}
quiet.TIMEOUT_S = quiet.LOOK_S = 0
"""
MARKERS = "".join(f"    {name}: ...\n" for name in ("unit", "lab", "quiet"))
TEST = """
import pytest
attempts = []
@pytest.mark.lab
@pytest.mark.quiet
def test_it(tmp_path):
    attempts.append(tmp_path)
    assert len(attempts) > {failures}
"""
QUIET = "quiet.observe_noise = lambda: ''\nquiet.STEAL_MAX = 2"
NOISY = "quiet.observe_noise = lambda: 'other programs used 99 %'\nquiet.STEAL_MAX = 2"
STOLEN = "quiet.observe_noise = lambda: ''\nquiet.STEAL_MAX = -1"


@pytest.fixture(autouse=True)
def _outside_ci(pytester, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # loading them takes longer than the test
    monkeypatch.delenv("CI", raising=False)
    pytester.makeini("[pytest]\nmarkers =\n" + MARKERS)


def run(pytester, noise, test):
    pytester.makeconftest(CONFTEST.format(noise=noise))
    pytester.makepyfile(test)
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", "--strict-markers")


@pytest.mark.parametrize(
    ("noise", "failures", "summary"),
    [
        (QUIET, 0, "*= 1 passed in *"),
        (QUIET, 1, "*= 1 failed in *"),
        (NOISY, 1, "*= 1 passed, 1 rerun in *"),
        (NOISY, 9, "*= 2 rerun, 1 undecided in *"),
        (STOLEN, 9, "*= 2 rerun, 1 undecided in *"),
    ],
)
def test_a_failure_counts_on_a_quiet_machine_only(pytester, noise, failures, summary):
    done = run(pytester, noise, TEST.format(failures=failures))
    done.stdout.fnmatch_lines([summary])


def test_each_rerun_and_each_undecided_test_is_listed_with_its_reason(pytester):
    done = run(pytester, NOISY, TEST.format(failures=9))
    done.stdout.fnmatch_lines(
        [
            "RERUN *::test_it - attempt 1: other programs used 99 %; AssertionError: assert 1 > 9",
            "RERUN *::test_it - attempt 2: other programs used 99 %; AssertionError: assert 2 > 9",
            "UNDECIDED *::test_it - 3 attempts failed, the last while *99 %: AssertionError: assert 3 > 9",
        ]
    )


@pytest.mark.parametrize(("in_ci", "status"), [(False, 0), (True, 1)])
def test_too_many_undecided_tests_fail_in_ci(pytester, monkeypatch, in_ci, status):
    if in_ci:
        monkeypatch.setenv("CI", "true")
    assert run(pytester, NOISY, TEST.format(failures=9)).ret == status


def test_an_error_that_noise_cannot_cause_is_a_failure(pytester):
    test = "import pytest\n@pytest.mark.lab\n@pytest.mark.quiet\ndef test_it():\n    open('/proc/none')"
    run(pytester, NOISY, test).assert_outcomes(failed=1)


@pytest.mark.parametrize("marks", ["", "@pytest.mark.lab\n@pytest.mark.unit\n"])
def test_a_file_without_one_level_is_refused(pytester, marks):
    done = run(pytester, QUIET, f"import pytest\n{marks}def test_it(): pass")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines(["*expected one level: pytestmark = *"])


def test_shares_of_busy_and_stolen_cpu_are_read_from_ticks():
    before, after = quiet.CpuTicks(busy=0, steal=0, all=0), quiet.CpuTicks(busy=50, steal=1, all=100)
    assert after.shares_since(before) == (0.5, 0.01)


def test_levels_are_declared_markers(pytestconfig):
    declared = {line.partition(":")[0] for line in pytestconfig.getini("markers")}
    assert declared >= {*conftest.LEVELS, "quiet", "proof"}
