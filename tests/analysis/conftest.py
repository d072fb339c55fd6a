# SPDX-License-Identifier: Apache-2.0
"""Made-up runs of unfair-vgg19, and what its study finds in them."""

import shutil

import pytest

from analysis.reports.summary import summarize_run
from roundabout.store import Run
from tests.analysis.synthetic_runs import as_older
from tests.analysis.unfair_runs import synthetic_run


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """A complete run of five repetitions with its summary, so that no test computes it again; read it only."""
    run = synthetic_run(tmp_path_factory.mktemp("runs"))
    run.write_summary(summarize_run(run).record())
    return run


@pytest.fixture(scope="session")
def results(run):
    """What its study finds."""
    return summarize_run(run)


@pytest.fixture
def summary(results):
    """The same as summary.json has it."""
    return results.record()


@pytest.fixture
def make_run(tmp_path):
    """Makes a run of its own: `make_run(repetitions=3, spoilt={("fair", 2)})`."""

    def make(name="runs", **kwargs):
        return synthetic_run(tmp_path / name, **kwargs)

    return make


@pytest.fixture(scope="session")
def _short_run(tmp_path_factory):
    return synthetic_run(tmp_path_factory.mktemp("runs"), repetitions=1)


@pytest.fixture
def short_run(_short_run, tmp_path):
    """A run of one repetition, to be changed at will."""
    copy = shutil.copytree(_short_run.path, tmp_path / "runs" / _short_run.path.parent.name / _short_run.id)
    return as_older(Run(copy))
