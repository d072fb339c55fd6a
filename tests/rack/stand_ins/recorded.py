# SPDX-License-Identifier: Apache-2.0
"""A machine as `doctor --record` wrote it, as a tree of files with tools in bin/ that say what they said."""

import json
import sys
from pathlib import Path
from typing import Any

ANSWER = """#!{python} -SE
import json, sys
for call in json.loads({calls!r}):
    if call["words"][1:] == sys.argv[1:]:
        sys.stdout.write(call["stdout"])
        sys.stderr.write(call["stderr"])
        sys.exit(call["status"])
sys.exit("not recorded: " + " ".join(sys.argv))
"""


def build(host: dict[str, Any], root: Path) -> None:
    """Write one host of a recording to `root`, which stands for /."""
    for folder in host["folders"]:
        (root / folder.lstrip("/")).mkdir(parents=True, exist_ok=True)
    for path, content in host["files"].items():
        file = root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    for path, target in host["links"].items():
        link = root / path.lstrip("/")
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(f"{root}{target}" if target.startswith("/") else target)
    (root / "bin").mkdir()
    for name in {*host["programs"], *(call["words"][0] for call in host["calls"])}:
        calls = [call for call in host["calls"] if call["words"][0] == name]
        (root / "bin" / name).write_text(ANSWER.format(python=sys.executable, calls=json.dumps(calls)))
        (root / "bin" / name).chmod(0o755)
