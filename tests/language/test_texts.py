# SPDX-License-Identifier: Apache-2.0
"""The census reads the texts of each language, and no strings or code."""

import ast

import pytest

from tests.language import texts
from tests.language.docstring_names import unknown_names

pytestmark = pytest.mark.unit


def words(found):
    return [(text.line, text.words) for text in found]


def test_comments_of_c_are_read_and_strings_are_not():
    source = """// SPDX-License-Identifier: Apache-2.0
// Returns the rate
// of a flow.
const char *text = "// no comment"; // why
/* One block
 * of two lines. */
#define LIMIT 3 // bytes
"""
    assert words(texts.c_comments(source)) == [
        (2, "Returns the rate of a flow."),
        (4, "why"),
        (5, "One block of two lines."),
        (7, "bytes"),
    ]


def test_comments_of_a_shell_script_are_read_and_strings_and_lengths_are_not():
    source = "#!/bin/sh\n# Prepares\n# a machine.\necho '# no comment' \"$#\" ${#1}  # why\n"
    assert words(texts.shell_comments(source)) == [(2, "Prepares a machine."), (4, "why")]


def test_comments_of_a_template_are_read_also_those_that_it_writes():
    source = "{# For the\n   switch. #}\n{% set a = '{# no #}' %}\n# Written.\necho {{ a }}\n"
    assert words(texts.jinja_comments(source)) == [(1, "For the switch."), (4, "Written.")]


def test_comments_of_python_are_read_and_strings_are_not():
    assert words(texts.python_comments("# One\n# and two.\na = '# no'  # why\n")) == [(1, "One and two."), (3, "why")]


def test_messages_are_strings_of_errors_with_their_values_left_out():
    tree = ast.parse(
        "class Mine(UsageError): pass\n"
        "class UsageError(RoundaboutError): pass\n"
        "raise Mine(f'{path}: found {len(a)} of {\"each\"!r}', 'do ' 'this', hint=None)\n"
        "raise OSError('no')\n"
    )
    errors = texts.error_classes([tree])
    assert errors == {"RoundaboutError", "UsageError", "Mine"}
    assert [text.words for text in texts.messages(tree, errors)] == ["{}: found {} of {}", "each", "do this"]


def test_paragraphs_of_a_page_are_read_without_code():
    source = "# Title\n\nOne `name` and\ntwo.\n- item\n\n```\nno text\n```\n| a | b |\n"
    assert words(texts.page_paragraphs(source)) == [
        (1, "Title"),
        (3, "One `` and two."),
        (5, "item"),
        (10, "a | b |"),
    ]


def test_only_markdown_cells_of_a_notebook_are_read():
    source = "# %% [markdown]\n# ## Title\n#\n# Text.\n\n# %%\n# no text\nrun = 1\n"
    assert [text.words for text in texts.notebook_cells(source)] == ["Title", "Text."]


def test_a_name_in_a_docstring_must_be_in_its_module_or_one_that_it_imports():
    source = """def run(path):
    '''Run `path` by `other.gone`, `LIMIT`, `helper` or `gone`, and `report` with `--gone`.'''
    return json["report"]
"""
    trees = {
        "pkg/one.py": ast.parse("from pkg.two import helper\n" + source.replace("\\", "")),
        "pkg/two.py": ast.parse("LIMIT = 3\n\ndef helper(): return LIMIT\n"),
    }
    assert [(file, text.words) for file, text in unknown_names(trees)] == [("pkg/one.py", "gone")]
