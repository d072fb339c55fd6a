# SPDX-License-Identifier: Apache-2.0
"""The folder of a run's temporary files. It is removed at the end of the run, or by `clean` after a crash."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from roundabout.runner.machine.state import make_private
from roundabout.runner.machine.undo_journal import Entry, Journal

KIND = "folder"


@contextmanager
def temporary_files(run_id: str, journal: Journal, state: Path) -> Iterator[None]:
    """Direct all temporary files of this process and its children to a private folder for the duration of the block.

    The folder is in `state`, because in /tmp another user could create it first. `journal` gets an entry for `clean`.
    """
    folder, before = state / f"temporary-{run_id}", tempfile.tempdir
    names = ("TMPDIR", "ANSIBLE_LOCAL_TEMP")
    outer = {name: os.environ.pop(name, None) for name in names}
    with journal.register_undo({"kind": KIND, "path": str(folder)}, remove):
        make_private(folder)
        tempfile.tempdir = str(folder)
        os.environ.update(dict.fromkeys(names, str(folder)))
        try:
            yield
        finally:
            tempfile.tempdir = before
            for name, value in outer.items():
                del os.environ[name]
                if value is not None:
                    os.environ[name] = value


def remove(entry: Entry) -> None:
    """Remove the folder that a journal entry describes."""
    shutil.rmtree(entry["path"], ignore_errors=True)
