# SPDX-License-Identifier: Apache-2.0
"""Build the documentation's site in build/site: `python -m docgen.site`.

Pages are copied to build/docs first. There the index is called index.md, files outside docs/ that pages link to become
pages of their own, pages that the text names by path become links, and links show titles instead of file names. So
each link works in the site, and without a network.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from html import escape
from pathlib import Path

from docgen.generation import DOCS, write_all
from docgen.links import Link, find_links
from docgen.notebooks import SOURCES, format_notebook
from docgen.playground.engine import write_playground
from roundabout.core.errors import RoundaboutError
from roundabout.core.paths import ROOT

BUILD = ROOT / "build"
PAGES = BUILD / "docs"
SITE = BUILD / "site"
INDEX = "README.md"
OUTSIDE = "files"  # folder of the site that holds files from outside docs/
PICTURES = (".svg", ".png")
LANGUAGES = {".py": "python", ".yaml": "yaml", ".yml": "yaml", ".json": "json", ".c": "c", ".h": "c", ".cpp": "cpp"}
_LOADED = re.compile(
    r'<(?:script|img|iframe|source)\b[^>]*\bsrc="((?:https?:)?//[^"]*)|<link\b[^>]*\bhref="((?:https?:)?//[^"]*)'
)
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_SUBSECTION = re.compile(r"^### (.+)$", re.MULTILINE)
_ENTRY = re.compile(r"^\| \[([^]]+)\]\(([^)]+\.md)\)", re.MULTILINE)
_NAMED = re.compile(r"`?\bdocs/([a-z-]+/(?:[a-z-]+/)?[a-z0-9-]+\.md)`?")
_CODE_WITH_BAR = re.compile(r"(?<!`)`([^`\n]*\\\|[^`\n]*)`(?!`)")
_FILE_LINK = re.compile(r"\[(?P<text>`?[\w./-]+\.md`?)\]\((?P<path>[^)#]+\.md)(?P<anchor>#[^)]*)?\)")
_FENCE = re.compile(r"^```.*?^```|^ {4}[^\n]*", re.MULTILINE | re.DOTALL)


def main() -> int:
    """Make the pages, build the site from them, and say where it is. Return the exit status of the build."""
    for path in write_all():
        print(f"{path.relative_to(ROOT)} was not current, and is now")
    stage(DOCS, PAGES)
    try:
        write_playground(PAGES / "playground")
    except RoundaboutError as error:
        print(f"error: {error.message}\n  {error.hint}", file=sys.stderr)
        return error.exit_code
    configuration = BUILD / "mkdocs.yml"
    navigation = format_navigation((PAGES / "index.md").read_text())
    configuration.write_text(f"{(ROOT / 'mkdocs.yml').read_text()}nav:\n{navigation}")
    # Zensical keeps rendered pages from one build to the next, and would not see that a page is gone.
    shutil.rmtree(SITE, ignore_errors=True)
    words = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "--config-file", str(configuration)]
    status = subprocess.run(words, cwd=BUILD).returncode
    foreign = sorted({address for page in SITE.rglob("*.html") for address in find_foreign(page.read_text())})
    for address in foreign:
        print(f"error: pages load {address}; what a page shows must lie in the site", file=sys.stderr)
    if status or foreign:
        return status or 1
    print(f"site    {(SITE / 'index.html').relative_to(ROOT)}")
    print(f"search  python3 -m http.server --bind 127.0.0.1 --directory {SITE.relative_to(ROOT)}")
    return 0


def stage(docs: Path, pages: Path) -> None:
    """Fill the folder `pages` with the site's pages, made from `docs` and the files that these link to."""
    shutil.rmtree(pages, ignore_errors=True)
    shutil.copytree(docs, pages, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(Path(__file__).with_name("theme"), pages / "theme")
    (pages / INDEX).rename(pages / "index.md")
    outside: set[Path] = set()
    for page in sorted(docs.rglob("*.md")):
        name = page.relative_to(docs)
        text, found = convert(page.read_text(), page, docs)
        (pages / _site_name(name)).write_text(text)
        outside |= found
    for path in sorted(outside):
        target = pages / _outside_name(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix in PICTURES:
            shutil.copyfile(path, target)
        else:
            target.write_text(format_outside(path))


def convert(text: str, page: Path, docs: Path) -> tuple[str, set[Path]]:
    """Return a page's text for the site, and the files outside `docs` to which it links."""
    outside = set()

    def destination(link: Link) -> str:
        target = (page.parent / link.path).resolve() if link.path else page
        if target.is_relative_to(docs):
            name = _site_name(target.relative_to(docs))
        else:
            outside.add(target)
            name = _outside_name(target)
        anchor = f"#{link.anchor}" if link.anchor else ""
        return f"{_relative(name, page.relative_to(docs))}{anchor}" if link.path else anchor

    for link in reversed(list(find_links(text))):
        text = f"{text[: link.begin]}{destination(link)}{text[link.end :]}"
    titles = {path: title for title, path in _ENTRY.findall((docs / INDEX).read_text())}
    name = page.relative_to(docs)
    return _name_links(_link_named_pages(_show_bars(text), name, docs), name, titles), outside


def find_foreign(page: str) -> list[str]:
    """Return the addresses outside the site from which the HTML of `page` loads scripts, styles or pictures."""
    return [script or style for script, style in _LOADED.findall(page)]


def format_navigation(index: str) -> str:
    """Return the site's navigation as YAML: each section of the index that lists pages, with its subsections."""
    _, *parts = _SECTION.split(index)
    lines = ["  - Home: index.md\n"]
    for section, text in zip(parts[::2], parts[1::2], strict=True):
        lines.append(f"  - {section}:\n")
        own, *groups = _SUBSECTION.split(text)
        lines += _format_entries(own, "      ")
        for group, listed in zip(groups[::2], groups[1::2], strict=True):
            lines += [f"      - {group}:\n", *_format_entries(listed, "          ")]
    return "".join(lines)


def _format_entries(text: str, indent: str) -> list[str]:
    return [f"{indent}- {title}: {path}\n" for title, path in _ENTRY.findall(text)]


def format_outside(path: Path) -> str:
    """Return the page that shows a file of the tree from outside docs/, of a notebook the executed one."""
    if path.parent == SOURCES:
        return format_notebook(path)
    name = str(path.relative_to(ROOT))
    text = path.read_text()
    if path.suffix == ".md":
        # Replace the page's links by their text, because they lead to files that the site does not have.
        for link in reversed(list(find_links(text))):
            begin = text.rindex("[", 0, link.begin)
            text = f"{text[:begin]}{text[begin + 1 : link.begin - 2]}{text[link.end + 1 :]}"
        return text
    fence = "`" * max(3, *(len(each) + 1 for each in re.findall(r"`{3,}", text)), 3)
    return f"# {name}\n\n{fence}{LANGUAGES.get(path.suffix, '')}\n{text.rstrip()}\n{fence}\n"


def _show_bars(text: str) -> str:
    """Return `text` with HTML for code in tables that has an escaped bar, whose backslash the site would show."""

    def shown(found: re.Match[str]) -> str:
        return f"<code>{escape(found[1].replace(chr(92) + '|', '|')).replace('|', '&#124;')}</code>"

    lines = text.split("\n")
    return "\n".join(_CODE_WITH_BAR.sub(shown, line) if line.startswith("|") else line for line in lines)


def _name_links(text: str, page: Path, titles: Mapping[str, str]) -> str:
    """Return `text` with pages' titles in place of their file names, where these are all that a link shows."""

    def named(found: re.Match[str]) -> str:
        target = os.path.normpath(page.parent / found["path"])
        title = titles.get(target) or found["text"]
        return f"[{title}]({found['path']}{found['anchor'] or ''})"

    return _FILE_LINK.sub(named, text)


def _link_named_pages(text: str, page: Path, docs: Path) -> str:
    """Return `text` with links in place of pages that it names by their path, but for code blocks."""

    def linked(found: re.Match[str]) -> str:
        before = text[found.start() - 1 : found.start()]
        if found[1] == str(page) or before in ("[", "/") or not (docs / found[1]).is_file():
            return found[0]
        return f"[{found[0]}]({_relative(Path(found[1]), page)})"

    pieces = []
    at = 0
    for fence in _FENCE.finditer(text):
        pieces += [_NAMED.sub(linked, text[at : fence.start()]), fence[0]]
        at = fence.end()
    return "".join([*pieces, _NAMED.sub(linked, text[at:])])


def _site_name(name: Path) -> Path:
    return Path("index.md") if name == Path(INDEX) else name


def _outside_name(path: Path) -> Path:
    name = Path(OUTSIDE) / path.relative_to(ROOT)
    return name if path.suffix in (".md", *PICTURES) else name.with_name(f"{name.name}.md")


def _relative(target: Path, page: Path) -> str:
    return os.path.relpath(target, page.parent).replace(os.sep, "/")


if __name__ == "__main__":
    sys.exit(main())
