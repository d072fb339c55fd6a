# SPDX-License-Identifier: Apache-2.0
"""Hundreds of spoilt files: each is read, or refused with one message that names the file. Nothing else happens."""

import json
from pathlib import Path
from unittest import mock

import pytest
import yaml
from hypothesis import given, settings, strategies as st

from roundabout.plan import make_plan
from roundabout.spec import SpecError, load_experiment
from roundabout.spec.reader import yaml_source
from tests.mutations import Mistakes, assert_one_message, spoilt_bytes

pytestmark = pytest.mark.unit

FILES = [
    "catalog/rich.yaml",
    "catalog/hotnets22/unfair-vgg19.yaml",
    "topologies/small/dumbbell-2x2.yaml",
    "profiles/hotnets22/vgg19-fig1.yaml",
    "profiles/cassini/bert-8.yaml",
]
MISTAKES = Mistakes(
    ["", "name", "j1", "s0", "s9", "dcqcn", "variant", "fair", "bert-8", "../bert-8", "yes", "1", "~", "a.b", "ü", "\0"]
)  # fmt: skip


class Spoilt:
    """The library with one file spoilt, for as long as it takes to read the experiments that use it."""

    def __init__(self, library: Path, file: str, content: bytes) -> None:
        self.library = library
        self.path = library / file
        self.content = content

    def check(self) -> bool:
        """Whether the file was accepted; fails on anything but a plan that can be written, or one message."""
        refusal = None
        whole = self.path.read_bytes()
        self.path.write_bytes(self.content)
        name = self.path if "catalog" in self.path.parts else self.library / "catalog" / "rich.yaml"
        try:
            experiment = load_experiment(name, self.library)
        except SpecError as error:
            refusal = error
        finally:
            self.path.write_bytes(whole)
        if refusal:
            assert_one_message(refusal, str(self.library))
            return False
        assert len(make_plan(experiment, {}, {}).trials) == experiment.trial_count
        json.dumps(experiment.model_dump(mode="json"), allow_nan=False)
        return True


@pytest.fixture(scope="module")
def library(library: Path) -> Path:
    """The copy as it is before any spoiling: accepted."""
    for file in FILES:
        assert Spoilt(library, file, (library / file).read_bytes()).check()
    return library


@settings(max_examples=100)
@given(data=st.data())
def test_an_experiment_with_spoilt_values_is_read_or_refused(library: Path, data: st.DataObject) -> None:
    file = data.draw(st.sampled_from(FILES))
    tree = yaml.safe_load((library / file).read_bytes())
    Spoilt(library, file, MISTAKES.spoilt(tree, data.draw)).check()


@settings(max_examples=100)
@given(data=st.data())
def test_an_experiment_with_spoilt_bytes_is_read_or_refused(library: Path, data: st.DataObject) -> None:
    file = data.draw(st.sampled_from(FILES))
    Spoilt(library, file, spoilt_bytes((library / file).read_bytes(), data.draw)).check()


def read(text: str, reader: object) -> tuple[object, ...]:
    """What libyaml or, if `reader` is None, PyYAML reads in `text`, with the places, or the message."""
    with mock.patch.object(yaml_source, "FastLoader", reader):
        try:
            root = yaml_source.parse(text, "x.yaml").root
        except SpecError as error:
            return (str(error),)
    return root, root.marks


@settings(max_examples=200)
@given(data=st.data())
def test_libyaml_and_pyyaml_read_the_same(library: Path, data: st.DataObject) -> None:
    content = (library / data.draw(st.sampled_from(FILES))).read_bytes()
    text = spoilt_bytes(content, data.draw).decode(errors="replace")
    assert read(text, yaml_source.FastLoader) == read(text, None)


@pytest.mark.proof
@settings(max_examples=500)
@given(data=st.data())
def test_an_experiment_with_spoilt_lines_is_read_or_refused(library: Path, data: st.DataObject) -> None:
    file = data.draw(st.sampled_from(FILES))
    lines = (library / file).read_text().splitlines()
    for _ in range(data.draw(st.integers(1, 3))):
        at, to = data.draw(st.tuples(*[st.integers(0, len(lines) - 1)] * 2))
        change = data.draw(st.sampled_from(["swap", "repeat", "indent", "outdent"]))
        if change == "swap":
            lines[at], lines[to] = lines[to], lines[at]
        elif change == "repeat":
            lines.insert(to, lines[at])
        else:
            lines[at] = "  " + lines[at] if change == "indent" else lines[at].removeprefix("  ")
    Spoilt(library, file, "\n".join(lines).encode()).check()


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
def test_odd_files(tmp_path: Path, text: str) -> None:
    path = tmp_path / "odd.yaml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(SpecError, match=r"odd\.yaml"):
        load_experiment(path)
