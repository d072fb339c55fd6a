# SPDX-License-Identifier: Apache-2.0
"""The rules of docs/contributing/style.md find what they forbid, and the tree keeps within its ratchet."""

import ast
import subprocess

import pytest

from tests.language import __main__ as command
from tests.language.census import ROOT, docstring_kinds, is_noun, is_speech, text_kinds
from tests.language.names import c_names, python_names

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("Return the trials that are not committed yet.", []),
        ("What a trial takes from others.", ["opener"]),
        ("Whether nobody holds the lock.", ["opener", "people"]),
        ("Whatever follows is read as one line.", []),
        ("All of a run's trials.", ["opener"]),
        ("Words.", ["short"]),
    ],
)
def test_each_docstring_rule_is_checked(text, kinds):
    assert list(docstring_kinds(text)) == kinds


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("The kernel returns the rate, if it is known; unknown rates are left out.", []),
        ("The sampler tells the port, and nobody heeds it.", ["people", "speech", "speech"]),
        ("Requires what a flow asks for; known to the sink.", ["speech", "speech"]),
        ("A well-known port. Runs as user nobody for the user who called `ask`.", []),
        ("Whose share it has.", []),
        ("Those that are due.", ["opener"]),
    ],
)
def test_texts_are_checked_for_people_and_speech(text, kinds):
    assert list(text_kinds(text)) == kinds


@pytest.mark.parametrize(
    ("name", "forbidden"),
    [
        ("told", True),
        ("_members_told", True),
        ("test_a_port_hears_nothing", True),
        ("kWelcome", True),
        ("ToldApart", True),
        ("HEARD", True),
        ("known_hosts", False),
        ("kNew", False),
        ("task", False),
        ("asked_gbps", False),
    ],
)
def test_acts_of_speech_are_found_in_names(name, forbidden):
    assert is_speech(name) == forbidden


def test_names_are_read_where_they_are_defined():
    tree = ast.parse("def f(a, *b):\n    c = self.d = a\n    for e in file.tell(): pass\nclass G: h: int = 1\n")
    assert {name.words for name in python_names(tree)} == set("fabcdeGh")
    assert [*c_names('int f(int a) { // b\n  return g(a, "c"); }\n')] == [
        *((1, "f"), (1, "a"), (2, "g"), (2, "a")),
    ]


@pytest.mark.parametrize("name", ["phase_overlap", "settings", "training_settings", "testbed", "__init__", "ring"])
def test_nouns_are_module_names(name):
    assert is_noun(name)


@pytest.mark.parametrize("name", ["kept", "apart", "accepted", "judging", "one_sided", "over_ssh"])
def test_participles_and_adverbs_are_not_module_names(name):
    assert not is_noun(name)


def test_the_ratchet_refuses_a_rise_and_a_fall_that_is_not_kept():
    finding = command.Finding("opener", "roundabout/x.py", 3, "What it is.")
    assert command.too_many([finding], {}) != []
    assert command.too_many([finding], {"roundabout": {"opener": 1}}) == []
    assert command.too_lax({"roundabout": {"opener": 2}}, {"roundabout": {"opener": 1}}) != []
    assert command.lowered({"roundabout": {"opener": 2, "short": 1}}, {"roundabout": {"opener": 1}}) == {
        "roundabout": {"opener": 1}
    }


@pytest.mark.parametrize(("length", "status"), [(72, 0), (73, 1)])
def test_the_hook_refuses_a_long_subject(tmp_path, length, status):
    message = tmp_path / "message"
    message.write_text("é" * length + "\n\nBody.\n")
    done = subprocess.run(
        [ROOT / ".githooks/commit-msg", message], capture_output=True, text=True, env={"LC_ALL": "C.UTF-8"}
    )
    assert done.returncode == status
