# SPDX-License-Identifier: Apache-2.0
"""Damaged files, for every reader: each file is read, or refused with one message that names it."""

import os
import random
import time
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given, settings, strategies as st

from roundabout.core.errors import RoundaboutError
from roundabout.spec import SpecError, load_experiment
from roundabout.spec.reader import yaml_source
from tests.damage.mutator import assert_one_message, damage
from tests.damage.readers import EXPERIMENT_FILES, READERS, Files, Reader

pytestmark = [pytest.mark.unit, pytest.mark.usefixtures("few_resamplings")]

FUZZ_S = int(os.environ.get("FUZZ_SECONDS", "5"))
FUZZ_SEED = int(os.environ.get("FUZZ_SEED", "1"))
SEEDS = st.integers(0, 2**32 - 1)


class Target:
    """A reader, and the folder from which it reads."""

    def __init__(self, reader: Reader, folder: Path) -> None:
        self.reader = reader
        self.folder = folder
        reader.prepare(folder)

    def refusal(self, files: Files, damaged: str) -> RoundaboutError | None:
        """Return the refusal of the files, which is one message on them, or None if they are read."""
        for name, content in files.items():
            (self.folder / name).write_bytes(content)
        try:
            self.reader.read(self.folder, damaged)
        except self.reader.refusal as error:
            assert_one_message(error, str(self.folder if len(files) > 1 else self.folder / damaged))
            return error
        return None

    def is_read_after_damage(self, rng: random.Random) -> bool:
        """Damage one file of a sample, and return True if it is read."""
        files = rng.choice(self.reader.samples)
        name = rng.choice(list(files))
        others = [content for sample in self.reader.samples for content in sample.values()]
        content = damage(files[name], rng, form=self.reader.form, words=self.reader.words, others=others)
        return self.refusal({**files, name: content}, name) is None


@pytest.fixture(scope="module", params=READERS)
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Target:
    return Target(READERS[request.param], tmp_path_factory.mktemp("damage"))


def test_samples_are_read(target: Target) -> None:
    assert any(not target.refusal(files, name) for files in target.reader.samples for name in files)


@given(seed=SEEDS)
def test_a_damaged_file_is_read_or_refused(target: Target, seed: int) -> None:
    target.is_read_after_damage(random.Random(seed))


@pytest.mark.parametrize(
    ("name", "old", "new", "field"),
    [
        ("experiments", b"    fair:\n", b"    fair: 5\n", "factors.variant.fair"),
        ("kineto", b'"dtype": "Float"', b'"dtype": "odd"', "dtype"),
        ("nccl-tests", b'"devices":[', b'"devices":[],"x":[', "devices"),
        ("trace: helios", b",4,", b",1.5,", "gpu_num"),
    ],
)
def test_a_damaged_field_is_named(name: str, old: bytes, new: bytes, field: str, tmp_path: Path) -> None:
    target = Target(READERS[name], tmp_path)
    sample, file = next(
        (sample, file) for sample in target.reader.samples for file, content in sample.items() if old in content
    )
    refusal = target.refusal({**sample, file: sample[file].replace(old, new)}, file)
    assert refusal is not None
    assert f"{field}: " in refusal.message


@pytest.mark.proof
def test_a_damaged_file_is_read_or_refused_at_length(target: Target, request: pytest.FixtureRequest) -> None:
    """Damage samples for FUZZ_SECONDS."""
    rng, end, tried, read = random.Random(FUZZ_SEED), time.monotonic() + FUZZ_S, 0, 0
    while time.monotonic() < end:
        read += target.is_read_after_damage(rng)
        tried += 1
    print(f"{request.node.name}: {tried} inputs in {FUZZ_S} s, {read} of them read")
    assert read


def parse(text: str, reader: object) -> tuple[object, ...]:
    """Return what libyaml or, if `reader` is None, PyYAML reads, with the places, or the message."""
    with mock.patch.object(yaml_source, "FastLoader", reader):
        try:
            root = yaml_source.parse(text, "x.yaml").root
        except SpecError as error:
            return (str(error),)
    return root, root.marks


@settings(max_examples=200)
@given(seed=SEEDS)
def test_libyaml_and_pyyaml_read_the_same(seed: int) -> None:
    rng = random.Random(seed)
    text = damage(rng.choice(list(EXPERIMENT_FILES.values())), rng).decode(errors="replace")
    assert parse(text, yaml_source.FastLoader) == parse(text, None)


@pytest.mark.parametrize(
    "text",
    [
        "", "null", "[]", "a", "---\n---\n", "a: 1\n---\nb: 2", "%YAML 9.9\n---\na: 1", "{" * 5000, "[" * 50 + "]" * 50,
        "a: &x [*x]", "a: &x 1\nb: *x", "<<: {a: 1}", "? [a]\n: 1", "? {a: b}\n: 1", "1: 2", "true: 2", "~: 2",
        "a: !!int x", "a: !!binary x", "a: 2020-01-01", "\ufeffname: x", "a: \"\\ud800\"", "name: \"\\u0000\"",
        "x" * 1_100_000, "factors: {a: " + str(list(range(50))) + ", b: " + str(list(range(50))) + "}",
        "a: 1_", "a: 0x", "a: =",
    ],
)  # fmt: skip
def test_an_odd_experiment_file_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "odd.yaml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(SpecError, match=r"odd\.yaml"):
        load_experiment(path)
