# SPDX-License-Identifier: Apache-2.0
"""While an experiment is read, no file of it is read twice; the next one sees what has changed."""

from pathlib import Path

import pytest

from roundabout.spec import load_experiment
from roundabout.spec.assembly.file_cache import cached_files, read_once
from roundabout.spec.transports import registry

pytestmark = pytest.mark.unit

COUNTER = 'COUNTER(__u64, {name}, "segments", "received");\n'


def names(program: Path) -> list[str]:
    declared = registry.find_declaration("mine", str(program))
    return [each.name for each in declared.counters] if declared else []


def test_a_source_is_read_once_within_the_cache_and_anew_after_it(tmp_path: Path) -> None:
    program = tmp_path / "mine.bpf.c"
    program.write_text(COUNTER.format(name="first"))
    with cached_files():
        assert names(program) == ["first"]
        program.write_text(COUNTER.format(name="other_name"))
        with cached_files():
            assert names(program) == ["first"]
        assert names(program) == ["first"]
    assert names(program) == ["other_name"]


def test_a_file_is_read_anew_outside_of_the_cache() -> None:
    contents = iter(range(5))
    assert [read_once("key", lambda: next(contents)) for _ in range(2)] == [0, 1]
    with cached_files():
        assert [read_once("key", lambda: next(contents)) for _ in range(2)] == [2, 2]
    assert read_once("key", lambda: next(contents)) == 3


def test_each_experiment_sees_the_program_as_it_is(tmp_path: Path) -> None:
    program, experiment = tmp_path / "mine.bpf.c", tmp_path / "one.yaml"
    experiment.write_text(
        "name: one\nabout: One\ntopology: pair\niterations: 5\ntransport: {file: mine.bpf.c}\n"
        "jobs: {j1: {profile: halves, workers: [s0, s1]}}\n"
    )
    found = []
    for name in ("DCQCN", "HPCC_"):
        program.write_text(f"STANDS_FOR({name});\n")
        (cell,) = load_experiment(experiment).cells
        found.append(cell.spec.jobs["j1"].transport.stands_for)
    assert found == ["DCQCN", "HPCC_"]
