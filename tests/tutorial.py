# SPDX-License-Identifier: Apache-2.0
"""docs/tutorials/first-half-hour.md: the commands that it gives, in its order, and the file that it requires."""

import re
import shlex
from pathlib import Path

import yaml

TEXT = (Path(__file__).parents[1] / "docs/tutorials/first-half-hour.md").read_text()
COMMANDS = [shlex.split(line) for line in re.findall(r"^    (?:sudo )?roundabout (.+)$", TEXT, re.MULTILINE)]
(FILE,) = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
# A rule may be broken by what is measured; in a computed run, which has one repetition, it is judged nowhere.
MAY_END_WITH = {"compare": (0, 3)}


def write_file(folder: Path) -> None:
    """Write the experiment, called as the tutorial calls it."""
    (folder / f"{yaml.safe_load(FILE)['name']}.yaml").write_text(FILE)
