# SPDX-License-Identifier: Apache-2.0
"""Files to read: the shipped ones, and one that uses everything that an experiment may say."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from roundabout.spec import EXPERIMENTS

RICH = """\
schema: 1
name: rich
about: Uses everything that an experiment may say
source: no paper
topology: dumbbell-2x2
profile: vgg19-fig1
jobs:
  j1: {workers: [s0, s2], flows: 2, transport: {g: 0.5}}
  j2: {workers: [s1, s3], profile: bert-8, start_offset_ms: 20, jitter: 0}
iterations: 50
transport: {name: dcqcn, T_us: 125, F: 5}
factors:
  variant:
    alone: {one_job_at_a_time: true, iterations: 10}
    fair:
    unfair: {depends_on: [alone], jobs: {j1: {transport: {T_us: 100, g: null}}}}
    cubic: {transport: {name: cubic}, jobs: {j1: {transport: null}}}
  jobs.j2.flows: [1, 4]
  size:
    small: {expect: [{what: share, of: fair, paper: 1, tolerance: 0.1, basis: predicted}]}
    large: {jobs: {j2: {profile: vgg19-1400}}}
exclude:
  - {variant: [cubic, fair], jobs.j2.flows: 4}
repetitions: 3
seed: 7
expect:
  - {what: speedup of median iteration time, of: unfair, over: fair, job: j2,
     at: {jobs.j2.flows: 1}, paper: 1.2, tolerance: 0.1, basis: fitted}
"""


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the shipped specifications, to be spoilt at will."""
    root = tmp_path_factory.mktemp("experiments")
    shutil.copytree(EXPERIMENTS, root, dirs_exist_ok=True)
    (root / "catalog" / "rich.yaml").write_text(RICH)
    return root


@pytest.fixture
def rich(tmp_path: Path) -> Callable[[str, str], Path]:
    """Writes RICH with one passage replaced, and returns the path."""

    return changed_writer(tmp_path / "rich.yaml", RICH)


def changed_writer(path: Path, text: str) -> Callable[[str, str], Path]:
    """A function that writes `text` with one passage replaced, and returns the path."""

    def write(passage: str = "", replacement: str = "") -> Path:
        assert passage in text
        path.write_text(text.replace(passage, replacement, 1) if passage else text)
        return path

    return write
