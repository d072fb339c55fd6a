# SPDX-License-Identifier: Apache-2.0
"""Links between pages, and from pages to files of the tree, lead somewhere: on a git host, and so in the site."""

import re
import subprocess
from pathlib import Path

import pytest

from docgen.generation import DOCS
from docgen.links import broken_links, find_anchors, find_links
from docgen.site import INDEX, format_navigation
from roundabout.core.paths import ROOT

pytestmark = pytest.mark.unit

TESTS = "tests/docgen/"  # which name pages that are made up


def tracked() -> set[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return set(listed.splitlines())


def test_links_of_all_pages_lead_to_files_and_headings():
    files = tracked()
    pages = [ROOT / name for name in files if name.endswith(".md") and not name.startswith("tests/")]
    assert len(pages) > 50
    assert [problem for page in sorted(pages) for problem in broken_links(page, ROOT, files)] == []


def test_pages_that_the_tree_names_by_path_exist():
    files = tracked()
    named = re.compile(r"\bdocs/[a-z-]+/[\w/.-]+\.(?:md|svg|png|json|ya?ml|py)\b")
    texts = {name: (ROOT / name).read_bytes().decode(errors="replace") for name in files if not name.startswith(TESTS)}
    absent = {(name, page) for name, text in texts.items() for page in named.findall(text) if page not in files}
    assert absent == set()


def test_the_index_names_every_page_once():
    navigation = format_navigation((DOCS / INDEX).read_text())
    listed = [line.rpartition(": ")[2] for line in navigation.splitlines() if line.endswith(".md")]
    outside = {name for name in listed if name.startswith("../")}
    assert all((DOCS / name).is_file() for name in outside)
    pages = ["index.md", *(str(path.relative_to(DOCS)) for path in DOCS.glob("*/**/*.md"))]
    assert sorted(listed) == sorted([*pages, *outside])


def test_titles_in_the_navigation_are_short():
    titles = [
        line.split("- ")[1].partition(":")[0] for line in format_navigation((DOCS / INDEX).read_text()).splitlines()
    ]
    assert max(map(len, titles)) <= 24


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("see [a](b.md), ![c](d.png)", ["b.md", "d.png"]),
        ("see [a](b.md#c-d) and [e](#f)", ["b.md", ""]),
        ("[a](https://example.org/b.md) `[c](d.md)`", []),
        ("```\n[a](b.md)\n```\n\n    [c](d.md)\n", []),
        ("text\n\n`code` [a](b.md)\n", ["b.md"]),
    ],
)
def test_links_are_found_outside_code(text: str, paths: list[str]):
    assert [each.path for each in find_links(text)] == paths


def test_anchors_are_those_of_git_hosts():
    text = "# NCCL's settings\n\n## `roundabout lab` up\n\n## Twice\n\n## Twice\n\n```\n# code\n```\n"
    assert find_anchors(text) == {"nccls-settings", "roundabout-lab-up", "twice", "twice-1"}


def test_broken_links_are_named(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text("# One\n\n[a](other.md) [b](#one)\n[c](#two) [d](page.md#one) [e](../out.md)\n")
    assert list(broken_links(page, tmp_path, {"page.md"})) == [
        "page.md:3: other.md is no file of the tree",
        "page.md:4:  has no heading with the anchor two",
        "page.md:4: ../out.md is no file of the tree",
    ]
