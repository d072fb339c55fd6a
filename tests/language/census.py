# SPDX-License-Identifier: Apache-2.0
"""Count what docs/contributing/style.md forbids in texts and module names, folder by folder."""

import ast
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.language import texts
from tests.language.docstring_names import unknown_names
from tests.language.names import c_names, python_names, words_of
from tests.language.texts import Text

ROOT = Path(__file__).resolve().parents[2]
OPENERS = re.compile(r"(What|Whether|Of|Those|Its|That|All of)\b")
PEOPLE = re.compile(r"\b(who|whom|whoever|nobody|somebody|thereof|wherefore)\b", re.IGNORECASE)
# Words that are of people wherever they stand. "Who" may be of a reader in pages.
ANYONE = re.compile(r"\b(hast(y|ier|iest)|whoever|nobody|somebody)\b", re.IGNORECASE)
# A participle such as "known values" describes a value, and is no act of a program.
SPEECH = re.compile(
    r"\b((fore)?(tells?|told|telling)|asks?|asked|asking|hears?|heard|hearing|knows?|knew|knowing|known to"
    r"|owes?|owed|owing|heed(s|ed|ing)?|welcom(es?|ed|ing))\b",
    re.IGNORECASE,
)
# Names of stored fields and counters, and of sources whose bytes identifications hash.
KEPT_NAMES = {
    *("asked_bytes", "asked_gbps", "foretold", "paced_of_asked", "schedules_told"),
    *("asks_for", "dcqcn_hear", "heard_cnp", "held_cnps_hear"),
}
# Phrases with such a word that speak of people, or that are names.
ALLOWED = re.compile(
    r"\b(well-known|user nobody|load asked for"
    r"|(administrator|author|caller|engineer|operator|person|people|reader|user)s?,? who)\b",
    re.IGNORECASE,
)
FEWEST_WORDS = 4
MAX_SUBJECT = 72  # characters of a commit's subject
# Nouns, terms of the field and names that only look like participles or adverbs.
NOUNS = {
    *("ring", "settings", "string", "timing", "testbed", "spec", "seed", "speed", "feed", "embed"),
    *("deepspeed", "folding", "interleaving", "marking", "philly", "ranking", "resampling", "training"),
}
NOT_NOUNS = re.compile(r"(ed|ing|ly)$")
ADVERBS = {"apart", "beside", "given", "inside", "kept", "left", "once", "over_ssh", "told"}
PAGES = "docs/results/"
# Stored results, history, others' texts, and texts that quote what the rules forbid.
UNCHECKED = ("results/", "CHANGELOG.md", "LICENSES/", "docs/contributing/style.md", "tests/language/")
NOTEBOOKS = re.compile(r"analysis/studies/\w+/notebook\.py|analysis/notebooks/[a-z-]+\.md")


class Finding(NamedTuple):
    """One place that breaks a rule: its kind, file, line and the words found there."""

    kind: str
    file: str
    line: int
    words: str

    @property
    def folder(self) -> str:
        return str(Path(self.file).parent)


def findings(files: Iterable[str]) -> list[Finding]:
    """Return every finding in `files`, paths of tracked files relative to ROOT."""
    files = [file for file in files if not file.startswith(UNCHECKED)]
    product = [file for file in files if not file.startswith("tests/")]
    python = [file for file in product if file.endswith(".py")]
    return [
        *_text_findings(product),
        *_module_findings(python),
        *_mood_findings(python),
        *_name_findings(files),
        *_speech_findings(files),
    ]


def counts(found: Iterable[Finding]) -> dict[str, dict[str, int]]:
    """Return how many findings of each kind each folder has."""
    folders: dict[str, Counter[str]] = {}
    for each in found:
        folders.setdefault(each.folder, Counter())[each.kind] += 1
    return {folder: dict(sorted(kinds.items())) for folder, kinds in sorted(folders.items())}


def text_kinds(text: str) -> Iterator[str]:
    """Yield the kinds of rules that a text breaks: `opener`, and `people` and `speech` once for each word."""
    if OPENERS.match(text):
        yield "opener"
    prose = prose_of(text)
    yield from ["people" for _ in PEOPLE.finditer(prose)]
    yield from ["speech" for _ in SPEECH.finditer(prose)]


def prose_of(text: str) -> str:
    """Return a text without code and without the phrases that are allowed."""
    return ALLOWED.sub("", texts.CODE.sub("", text))


def is_speech(name: str) -> bool:
    """Return True for a name by which a machine tells, asks, hears, knows or owes."""
    return name not in KEPT_NAMES and SPEECH.search(words_of(name)) is not None


def docstring_kinds(text: str) -> Iterator[str]:
    """Yield the kinds of rules that a docstring breaks: those of each text, and `short`."""
    yield from text_kinds(text)
    if len(text.split()) < FEWEST_WORDS:
        yield "short"


def is_noun(module: str) -> bool:
    """Return False for a module name that is a participle or an adverb."""
    name = module.strip("_")
    last = name.rpartition("_")[2]
    return name not in ADVERBS and last not in ADVERBS and (last in NOUNS or not NOT_NOUNS.search(last))


def tracked_files() -> list[str]:
    """Return the files that git tracks, relative to ROOT."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [file for file in done.stdout.split("\0") if (ROOT / file).is_file()]


def _text_findings(files: list[str]) -> Iterator[Finding]:
    trees = {file: ast.parse((ROOT / file).read_text()) for file in files if file.endswith(".py")}
    errors = texts.error_classes(trees.values())
    for file, text in unknown_names(trees):
        yield Finding("name", file, *text)
    for file in files:
        if file in trees:
            for text in texts.docstrings(trees[file]):
                yield from _kinds(file, text, docstring_kinds(text.words), "")
            yield from _of_medium(file, "message", texts.messages(trees[file], errors))
        if file.startswith(PAGES) and file.endswith(".md"):
            yield from _of_medium(file, "page", texts.page_paragraphs((ROOT / file).read_text()))
        elif NOTEBOOKS.fullmatch(file):
            read = texts.notebook_cells if file in trees else texts.page_paragraphs
            yield from _of_medium(file, "notebook", read((ROOT / file).read_text()))
        elif read_comments := texts.comments_reader(ROOT / file):
            yield from _of_medium(file, "comment", read_comments((ROOT / file).read_text()))


def _name_findings(files: list[str]) -> Iterator[Finding]:
    for file in files:
        found: Iterable[Text] = ()
        if file.endswith(".py"):
            found = python_names(ast.parse((ROOT / file).read_text()))
        elif file.endswith((".c", ".h", ".cpp", ".hpp")):
            found = c_names((ROOT / file).read_text())
        yield from (Finding("name speech", file, *each) for each in found if is_speech(each.words))


def _speech_findings(files: list[str]) -> Iterator[Finding]:
    """Yield acts of speech, and people, in texts that no other rule reads: those of tests, pages and YAML files."""
    for file in files:
        for text in _other_texts(file):
            prose = prose_of(text.words)
            for kind, pattern in (("speech", SPEECH), ("people", ANYONE)):
                yield from _kinds(file, text, [kind for _ in pattern.finditer(prose)], "")


def _other_texts(file: str) -> Iterator[Text]:
    path = ROOT / file
    if file.endswith(".md") and not file.startswith(PAGES):
        yield from texts.page_paragraphs(path.read_text())
    elif file.endswith((".yml", ".yaml")):
        yield from (Text(number, line) for number, line in enumerate(path.read_text().splitlines(), 1))
    elif file.startswith("tests/"):
        if file.endswith(".py"):
            yield from texts.docstrings(ast.parse(path.read_text()))
        if read_comments := texts.comments_reader(path):
            yield from read_comments(path.read_text())


def _of_medium(file: str, medium: str, found: Iterable[Text]) -> Iterator[Finding]:
    for text in found:
        yield from _kinds(file, text, text_kinds(text.words), f"{medium} ")


def _kinds(file: str, text: Text, kinds: Iterable[str], prefix: str) -> Iterator[Finding]:
    for kind in kinds:
        yield Finding(f"{prefix}{kind}", file, text.line, text.words.partition("\n")[0])


def _module_findings(files: Iterable[str]) -> Iterator[Finding]:
    for file in files:
        if not is_noun(Path(file).stem):
            yield Finding("module", file, 1, Path(file).stem)


def _mood_findings(files: list[str]) -> Iterator[Finding]:
    command = [sys.executable, "-m", "ruff", "check", "--select", "D401", "--exit-zero", "--output-format", "json"]
    done = subprocess.run([*command, *files], cwd=ROOT, capture_output=True, text=True, check=True)
    for each in json.loads(done.stdout):
        file = str(Path(each["filename"]).relative_to(ROOT))
        yield Finding("mood", file, each["location"]["row"], each["message"])
