# SPDX-License-Identifier: Apache-2.0
"""Prose of docs/ has lines of at most 100 characters, and wrapping changes nothing that a page shows."""

import pytest

from docgen.generation import DOCS
from docgen.line_width import long_lines, wrap
from docgen.markdown import WIDTH

pytestmark = pytest.mark.unit

WORDS = "word " * 30


def test_lines_of_pages_have_at_most_100_characters():
    pages = {str(page.relative_to(DOCS)): long_lines(page.read_text()) for page in DOCS.rglob("*.md")}
    wide = {name: lines for name, lines in pages.items() if lines}
    assert wide == {}, "run `python -m docgen.line_width` on them"


def test_a_paragraph_and_an_item_are_wrapped():
    assert wrap(f"{WORDS.strip()}\n") == f"{('word ' * 20).strip()}\n{('word ' * 10).strip()}\n"
    first, second = wrap(f"12. {WORDS.strip()}\n").splitlines()
    assert first.startswith("12. word")
    assert second.startswith("    word")
    assert max(len(first), len(second)) <= WIDTH


@pytest.mark.parametrize(
    "text",
    [
        f"| {WORDS} |\n",
        f"# {WORDS}\n",
        f"```\n{WORDS}\n\n{WORDS}\n```\n",
        f"Text:\n\n    {WORDS}\n",
        f"<!-- {WORDS} -->\n",
        "two\nlines\n",
        "a break  \n" + WORDS + "\n",
    ],
)
def test_what_is_no_prose_stays(text: str):
    assert wrap(text) == text
    assert long_lines(text) == []


def test_code_is_not_broken():
    code = f"`{'ab ' * 10}cd`"
    assert code in wrap(f"{'x' * 80} {code} {WORDS}\n")


@pytest.mark.parametrize("sign", ["-", "1.", "#", "> 3", "|"])
def test_no_line_begins_with_a_sign_that_markdown_would_read(sign: str):
    text = f"{'x' * 97} {sign} end {WORDS}\n"
    assert not any(line.startswith(sign) for line in wrap(text).splitlines())
