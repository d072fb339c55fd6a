# SPDX-License-Identifier: Apache-2.0
"""Locks on files: held by descriptors, also inherited ones, and never on a file that is no longer at its path."""

import fcntl
import os
import subprocess
from functools import partial

import pytest

from roundabout.core import file_lock

pytestmark = pytest.mark.unit

FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
open_file = partial(os.open, flags=FLAGS)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "lock"


def test_a_lock_is_refused_while_another_descriptor_holds_it(path):
    held = file_lock.open_locked(path, open_file)
    assert held is not None
    assert file_lock.open_locked(path, open_file) is None
    os.close(held)
    again = file_lock.open_locked(path, open_file)
    assert again is not None
    os.close(again)


def test_shared_locks_exclude_only_exclusive_ones(path):
    with path.open("w") as one, path.open() as two, path.open() as three:
        assert file_lock.lock(one.fileno(), fcntl.LOCK_SH)
        assert file_lock.lock(two.fileno(), fcntl.LOCK_SH)
        assert not file_lock.lock(three.fileno(), fcntl.LOCK_EX)


@pytest.mark.parametrize("event", ["removed", "replaced"])
def test_a_file_that_vanishes_between_open_and_lock_is_opened_anew(path, event):
    opened = []

    def open_then_lose(path):
        opened.append(open_file(path))
        if len(opened) == 1:
            path.unlink()
            if event == "replaced":
                path.touch()
        return opened[-1]

    held = file_lock.open_locked(path, open_then_lose)
    assert held is not None
    assert held == opened[1]
    assert file_lock.is_file_at(held, path)
    assert file_lock.open_locked(path, open_file) is None, "others see the lock"
    os.close(held)


def test_a_replacement_that_another_process_locks_is_refused(path):
    others = []

    def open_then_lose(path):
        handle = open_file(path)
        if not others:
            path.unlink()
            others.append(file_lock.open_locked(path, open_file))
        return handle

    assert file_lock.open_locked(path, open_then_lose) is None
    os.close(others[0])


def test_no_descriptor_is_left_open_by_a_refusal_or_an_error(path, monkeypatch):
    held = file_lock.open_locked(path, open_file)
    before = os.listdir("/proc/self/fd")
    assert file_lock.open_locked(path, open_file) is None
    monkeypatch.setattr(file_lock, "lock", lambda *_: os.close(-1))
    with pytest.raises(OSError, match="Bad file descriptor"):
        file_lock.open_locked(path, open_file)
    assert os.listdir("/proc/self/fd") == before
    os.close(held)


def test_a_child_that_inherits_the_descriptor_holds_the_lock_until_it_ends(path):
    held = file_lock.open_locked(path, open_file)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=[held]) as child:
        os.close(held)
        assert file_lock.open_locked(path, open_file) is None
        child.stdin.close()
        child.wait()
    freed = file_lock.open_locked(path, open_file)
    assert freed is not None
    os.close(freed)


def test_a_folder_can_be_locked(tmp_path):
    open_folder = partial(os.open, flags=os.O_RDONLY | os.O_DIRECTORY)
    held = file_lock.open_locked(tmp_path, open_folder)
    assert held is not None
    assert file_lock.open_locked(tmp_path, open_folder) is None
    os.close(held)
