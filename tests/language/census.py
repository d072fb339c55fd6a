# SPDX-License-Identifier: Apache-2.0
"""Count what docs/contributing/style.md forbids in docstrings and module names, folder by folder."""

import ast
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
OPENERS = re.compile(r"(What|Whether|Of|Those|Its|That|All of)\b")
PEOPLE = re.compile(r"\b(nobody|somebody|whoever|whom|thereof|wherefore)\b", re.IGNORECASE)
FEWEST_WORDS = 4
SUBJECT_MOST = 72  # characters of a commit's subject
# Nouns, terms of the field and names that only look like participles or adverbs.
NOUNS = {
    *("ring", "settings", "string", "timing", "testbed", "spec", "seed", "speed", "feed", "embed"),
    *("deepspeed", "folding", "interleaving", "marking", "philly", "resampling", "training"),
}
NOT_NOUNS = re.compile(r"(ed|ing|ly)$")
ADVERBS = {"apart", "beside", "given", "inside", "kept", "left", "once", "over_ssh", "told"}
DEFINITIONS = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


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
    """Return every finding in `files`, paths of Python files relative to ROOT."""
    files = [file for file in files if not file.startswith("tests/")]
    return [*_docstring_findings(files), *_module_findings(files), *_mood_findings(files)]


def counts(found: Iterable[Finding]) -> dict[str, dict[str, int]]:
    """Return how many findings of each kind each folder has."""
    folders: dict[str, Counter[str]] = {}
    for each in found:
        folders.setdefault(each.folder, Counter())[each.kind] += 1
    return {folder: dict(sorted(kinds.items())) for folder, kinds in sorted(folders.items())}


def docstring_kinds(text: str) -> Iterator[str]:
    """Yield the kinds of rules that a docstring breaks: `opener`, `people` and `short`."""
    if OPENERS.match(text):
        yield "opener"
    if PEOPLE.search(text):
        yield "people"
    if len(text.split()) < FEWEST_WORDS:
        yield "short"


def is_noun(module: str) -> bool:
    """Return False for a module name that is a participle or an adverb."""
    name = module.strip("_")
    last = name.rpartition("_")[2]
    return name not in ADVERBS and last not in ADVERBS and (last in NOUNS or not NOT_NOUNS.search(last))


def tracked_files() -> list[str]:
    """Return the Python files that git tracks, relative to ROOT."""
    done = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [file for file in done.stdout.splitlines() if (ROOT / file).is_file()]


def _docstring_findings(files: Iterable[str]) -> Iterator[Finding]:
    for file in files:
        for node in ast.walk(ast.parse((ROOT / file).read_text())):
            text = ast.get_docstring(node) if isinstance(node, DEFINITIONS) else None
            for kind in docstring_kinds(text) if text else ():
                line = getattr(node, "lineno", 1)
                yield Finding(kind, file, line, (text or "").partition("\n")[0])


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
