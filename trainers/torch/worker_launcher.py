#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Starts a worker's command as a user without root's rights. Without root it starts the command as it is.

Only root can do what a worker needs before that: pin memory for RDMA without a limit, get a real-time priority, open
standard error by name as NCCL does, name the host by its address for Horovod, and restrict the store to the job's
hosts.
"""

import argparse
import contextlib
import ctypes
import json
import os
import pwd
import resource
import socket
import stat
import sys

import rendezvous_store

CLONE_NEWUTS = 0x04000000
PR_SET_NO_NEW_PRIVS = 38
LIBC = ctypes.CDLL(None, use_errno=True)


def main():
    """Start the command. Print an error event, and return 1, if it cannot start."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--user", required=True, help="user of the command if root starts it")
    parser.add_argument("--host-name", help="name of the host for this command alone; needs root")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="absolute paths of an interpreter and a program, ...")
    options = parser.parse_args()
    try:
        hurry()
        if os.geteuid() == 0:
            open_store(options.command)
            become(pwd.getpwnam(options.user), options.host_name)
        for path in options.command[:2]:
            check_readable(path, options.user)
        LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        os.execv(options.command[0], options.command)  # noqa: S606 - it replaces this program
    except KeyError:
        return refuse(
            "user {!r}: this host has no such user: name another by the trainer's `user`".format(options.user)
        )
    except OSError as error:
        return refuse("user {!r}: {}".format(options.user, error))


def hurry():
    """Take the lowest real-time priority, if allowed, to wake as fast as `replay`; the command inherits it."""
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(os.sched_get_priority_min(os.SCHED_RR)))


def open_store(command):
    """Open the socket of the store, if the command is that of a job's first worker, which inherits the socket."""
    options = dict(zip(command, command[1:]))
    if options.get("--rank") != "0":
        return
    workers = json.loads(options["--job"])["workers"]
    hosts = [worker["address"] for worker in workers]
    listener = rendezvous_store.listen(workers[0]["address"], workers[0]["port"], hosts)
    listener.set_inheritable(True)
    os.environ[rendezvous_store.GIVEN] = str(listener.detach())


def become(account, host_name):
    """Give up root's rights for those of `account`, permanently."""
    if host_name and socket.gethostname() != host_name and LIBC.unshare(CLONE_NEWUTS) == 0:
        socket.sethostname(host_name)
    with contextlib.suppress(ValueError):  # without the right, registering memory fails later
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    if stat.S_ISFIFO(os.fstat(2).st_mode):
        os.fchown(2, account.pw_uid, account.pw_gid)
    os.initgroups(account.pw_name, account.pw_gid)
    os.setresgid(account.pw_gid, account.pw_gid, account.pw_gid)
    os.setresuid(account.pw_uid, account.pw_uid, account.pw_uid)
    os.environ.update(HOME=account.pw_dir, USER=account.pw_name, LOGNAME=account.pw_name)
    os.chdir("/")


def check_readable(path, user):
    """Raise PermissionError if the user cannot read a file of the command."""
    if not os.access(path, os.R_OK):
        raise PermissionError(
            "cannot read {}: let all users read it and enter its folders, or name another user by the trainer's "
            "`user`".format(path)
        )


def refuse(message):
    """Print an error event as trainers do (trainers/PROTOCOL.md), and return the exit status."""
    print(json.dumps({"event": "error", "message": message}, separators=(",", ":")), flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main())
