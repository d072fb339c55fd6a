# SPDX-License-Identifier: Apache-2.0
"""Hold the tree against docs/contributing/style.md: `python -m tests.language`, or `--lower` after an improvement.

ratchet.json has the count of findings that each folder may still have. A count may only fall.
"""

import json
import subprocess
import sys
from pathlib import Path

from tests.language.census import MAX_SUBJECT, ROOT, Finding, counts, findings, tracked_files

RATCHET = Path(__file__).with_name("ratchet.json")
HOOK = ".githooks/commit-msg"
Counts = dict[str, dict[str, int]]  # findings by folder and kind


def main(words: list[str]) -> int:
    """Check the tree and the commits; with `--lower`, first lower the ratchet to the present counts."""
    found = findings(tracked_files())
    allowed = json.loads(RATCHET.read_text()) if RATCHET.exists() else counts(found)
    if words == ["--lower"]:
        allowed = lowered(allowed, counts(found))
        RATCHET.write_text(json.dumps(allowed, indent=1) + "\n")
    problems = [*too_many(found, allowed), *too_lax(allowed, counts(found)), *long_subjects()]
    print("\n".join(problems) or f"{len(found)} findings are left, none is new")
    return bool(problems)


def lowered(allowed: Counts, now: Counts) -> Counts:
    """Return `allowed` without what `now` no longer has."""
    return {
        folder: {kind: min(count, now[folder][kind]) for kind, count in kinds.items() if kind in now[folder]}
        for folder, kinds in allowed.items()
        if folder in now
    }


def too_many(found: list[Finding], allowed: Counts) -> list[str]:
    """Return a message for each folder and kind with more findings than allowed, and where they are."""
    problems = []
    for folder, kinds in counts(found).items():
        for kind, count in kinds.items():
            most = allowed.get(folder, {}).get(kind, 0)
            if count > most:
                problems.append(f"{folder}: {count} findings of kind '{kind}', at most {most} are allowed")
                here = [each for each in found if (each.folder, each.kind) == (folder, kind)]
                problems += [f"  {each.file}:{each.line}: {each.words}" for each in here]
    return problems


def too_lax(allowed: Counts, now: Counts) -> list[str]:
    """Return a message for each count that fell without the ratchet."""
    lax = [
        f"{folder}: {now.get(folder, {}).get(kind, 0)} findings of kind '{kind}', the ratchet still allows {most}"
        for folder, kinds in allowed.items()
        for kind, most in kinds.items()
        if now.get(folder, {}).get(kind, 0) < most
    ]
    return [*lax, "  lower it: python -m tests.language --lower"] if lax else []


def long_subjects() -> list[str]:
    """Return the commits since the hook was added whose subject is too long."""
    added = _git("log", "--diff-filter=A", "--format=%H", "--", HOOK).split()
    log = _git("log", "--no-merges", "--format=%h %s", f"{added[-1]}..HEAD") if added else ""
    lines = [line.partition(" ") for line in log.splitlines()]
    return [
        f"commit {commit}: the subject has {len(subject)} characters, at most {MAX_SUBJECT} are allowed"
        for commit, _, subject in lines
        if len(subject) > MAX_SUBJECT
    ]


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
