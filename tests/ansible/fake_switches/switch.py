# SPDX-License-Identifier: Apache-2.0
"""A switch, as far as an ssh session shows it. Constructed from documentation and public samples: nothing was recorded.

    switch.py FOLDER               one session: what is said on standard input, and the answers
    switch.py FOLDER --minutes N   N minutes pass

The folder is called as the system is (junos, sonic, ...), and keeps the switch's state.
"""

import sys
from pathlib import Path

import eos
import junos
import nvue
import shell
from state import load, save

SYSTEMS = {"cumulus": nvue, "eos": eos, "junos": junos, "sonic": shell, "tofino": shell}


def pass_time(folder: Path, minutes: int) -> None:
    """What was to be undone by then, the switch undoes."""
    state = load(folder)
    state["minute"] += minutes
    save(folder, state)
    SYSTEMS[folder.name].undo_what_is_due(folder)


def session(folder: Path) -> int:
    """One connection; its exit status is ssh's."""
    if SYSTEMS[folder.name].pending(folder):
        state = load(folder)
        if state["cuts"]:
            print("ssh: connect to host switch port 22: Connection timed out", file=sys.stderr)
            return 255
        pass_time(folder, state["late"])
    status: int = SYSTEMS[folder.name].converse(folder)
    return status


def main() -> int:
    folder = Path(sys.argv[1])
    if sys.argv[2:3] == ["--minutes"]:
        pass_time(folder, int(sys.argv[3]))
        return 0
    return session(folder)


if __name__ == "__main__":
    sys.exit(main())
