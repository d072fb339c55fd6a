# SPDX-License-Identifier: Apache-2.0
"""Links of Markdown pages: their targets, and the anchors of headings as git hosts make them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

# Code holds no links. Fences come first, because they may hold a single backtick.
_CODE = re.compile(r"^(```|~~~).*?^\1|(`+)(?!`).*?(?<!`)\2(?!`)", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?<=\n\n)(?: {4}[^\n]*\n)+")
_LINK = re.compile(r"\]\(([^)\s]+)(?: \"[^\"]*\")?\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:")


class Link(NamedTuple):
    """A link to a file of the tree: where it stands in the text, the path as written, and the anchor."""

    begin: int
    end: int
    path: str
    anchor: str


def find_links(text: str) -> Iterator[Link]:
    """Yield the links of a page that lead to files of the tree, images included."""
    for found in _LINK.finditer(_without_code(text)):
        if not _ELSEWHERE.match(found[1]):
            path, _, anchor = found[1].partition("#")
            yield Link(found.start(1), found.end(1), path, anchor)


def find_anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings. Of headings with one text, a number follows all but the first."""
    counts: dict[str, int] = {}
    anchors = set()
    fenceless = re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.MULTILINE | re.DOTALL)
    for heading in _HEADING.findall(fenceless):
        slug = slugify(heading)
        anchors.add(f"{slug}-{counts[slug]}" if slug in counts else slug)
        counts[slug] = counts.get(slug, 0) + 1
    return anchors


def slugify(heading: str) -> str:
    """Return the anchor that git hosts give a heading: lower case, no punctuation, hyphens for spaces."""
    shown = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")


def broken_links(page: Path, root: Path, files: set[str]) -> Iterator[str]:
    """Yield a message for each link of `page` that a git host, or the site, could not follow.

    `files` are the paths of all files that git has, relative to `root`.
    """
    text = page.read_text()
    for link in find_links(text):
        where = f"{page.relative_to(root)}:{text.count(chr(10), 0, link.begin) + 1}"
        target = (page.parent / link.path).resolve() if link.path else page
        if not target.is_relative_to(root) or str(target.relative_to(root)) not in files:
            yield f"{where}: {link.path} is no file of the tree"
        elif link.anchor and target.suffix == ".md" and link.anchor not in find_anchors(target.read_text()):
            yield f"{where}: {link.path} has no heading with the anchor {link.anchor}"


def _without_code(text: str) -> str:
    """Return `text` with code replaced by dots and spaces, so that places in it stay the same.

    A paragraph that begins with code must not look indented: spaces would hide its links.
    """
    blank = _CODE.sub(lambda found: re.sub(r"[^\n]", ".", found[0]), text)
    return _INDENTED.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), blank)
