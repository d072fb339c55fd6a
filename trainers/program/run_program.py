#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command as one worker of a job, and reports the iterations in its output: trainers/PROTOCOL.md.

Arguments: the worker's rank, the job's description, and the worker's options, both as JSON. The options are `command`,
or null for a worker that runs nothing; `pattern`, or null for a worker whose output has no iterations; `file`, `skip`
and `startup_s` as in the trainer's fields (roundabout/spec/trainers/program.py).
"""

import collections
import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time

import training_flows
from iteration_lines import FileTail, IterationParser, LineSplitter
from worker_protocol import refuse, say, start_of

TICK_S = 0.01  # how often the end of the command, and the file, are looked at
CHUNK_BYTES = 65536
LAST_LINES, LAST_LINE_LENGTH = 5, 200  # lines of output in an error, and letters of each
END_TIMEOUT_S = 2  # time for processes to end by SIGTERM; the runner waits 5 s in all
STOPPED = 3  # exit status (trainers/PROTOCOL.md)
PR_SET_CHILD_SUBREAPER = 36


class StoppedError(Exception):
    """Standard input was closed."""


class Command:
    """A running command, in a session of its own.

    Its standard output is a terminal, because C programs write to a terminal by lines, and to a pipe by blocks.
    """

    def __init__(self, command, environment):
        terminal, output = os.openpty()
        self.process = subprocess.Popen(
            ["bash", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.PIPE,
            env=environment,
            cwd="/",
            start_new_session=True,
            preexec_fn=take_ordinary_priority,  # noqa: PLW1509 - this program has no threads
        )
        os.close(output)
        self._errors = self.process.stderr.fileno()
        self._outputs = {terminal: LineSplitter(), self._errors: LineSplitter()}
        self._last = collections.deque(maxlen=LAST_LINES)

    def read(self):
        """Wait a moment, and return the lines that the command printed, or None once it has ended.

        Raises StoppedError.
        """
        ended = self.process.poll() is not None
        ready, _, _ = select.select([0, *self._outputs], [], [], 0 if ended else TICK_S)
        if 0 in ready:
            raise StoppedError
        if ended and not ready:
            return None
        lines = [line for each in ready for line in self._read(each)]
        self._last.extend(lines)
        return lines

    def _read(self, descriptor):
        try:
            chunk = os.read(descriptor, CHUNK_BYTES)
        except OSError:  # the terminal's way to say that all its users have closed it
            chunk = b""
        if not chunk:
            rest = self._outputs.pop(descriptor).rest()
            self._last.extend([rest] * bool(rest))
            return []
        if descriptor == self._errors:
            with contextlib.suppress(OSError):
                os.write(2, chunk)
        return self._outputs[descriptor].split(chunk)

    def describe_end(self):
        """Return how the command ended."""
        status = self.process.returncode
        if status < 0:
            return "was ended by {}".format(signal.Signals(-status).name)
        return "ended with exit status {}".format(status)

    def describe_output(self):
        """Return the last lines that the command printed."""
        if not self._last:
            return "it printed nothing"
        return "its last lines: {}".format(" | ".join(line[:LAST_LINE_LENGTH] for line in self._last))


class Worker:
    """One worker of a job: its command, and the iterations that it reported."""

    def __init__(self, rank, job, options):
        self._options, self._expected, self._reported = options, job["iterations"], 0
        self._parser = IterationParser(options["pattern"], options["skip"]) if options["pattern"] else None
        self._file = FileTail(options["file"]) if self._parser and options["file"] else None
        self._file_lines = LineSplitter()
        self._begin_s = time.monotonic()
        self._command = Command(options["command"], environment(rank, job))

    def follow(self):
        """Report the command's iterations until it ends.

        Raises ValueError if it fails or ends before the job's iterations, OSError if the file cannot be read, and
        StoppedError.
        """
        if self._parser is None:
            self._finish()
        lines = []
        while lines is not None:
            lines = self._command.read()
            searched = self._file_lines.split(self._file.read()) if self._file else lines or ()
            for line in searched:
                self._take(line)
            self._check_startup()
        if self._reported < self._expected or (self._parser is None and self._command.process.returncode):
            self._fail(self._command.describe_end())

    def _finish(self):
        if self._parser and 2 * self._parser.bunched > self._expected:
            self._fail("printed most lines within 1 ms of the line before, without a time (flush each line)")
        self._reported = self._expected
        say("done", iterations=self._expected)

    def _take(self, line):
        if self._parser is None or self._reported == self._expected:
            return
        try:
            iteration = self._parser.parse(line, time.monotonic_ns())
        except ValueError as error:
            self._fail("reported {}".format(error))
        if iteration is None:
            return
        say("iteration", iteration=self._reported, **iteration)
        self._reported += 1
        if self._reported == self._expected:
            self._finish()

    def _check_startup(self):
        if not self._reported and time.monotonic() - self._begin_s > self._options["startup_s"]:
            self._fail("reported no iteration within the startup_s of {:g}".format(self._options["startup_s"]))

    def _fail(self, reason):
        progress = ""
        if self._parser:
            place, pattern = self._options["file"] or "its output", self._options["pattern"]
            progress = " after {} of {} iterations; lines of {} that match the pattern '{}': {}".format(
                self._reported, self._expected, place, pattern, self._parser.matched
            )
        command, output = self._options["command"], self._command.describe_output()
        raise ValueError("the command {!r} {}{}; {}".format(command, reason, progress, output))


def environment(rank, job):
    """Return the command's environment: PyTorch's variables for workers that meet, and those of the job."""
    workers = job["workers"]
    own, hosts = workers[rank], [worker["name"] for worker in workers]
    variables = {
        "MASTER_ADDR": workers[0]["address"],
        "MASTER_PORT": workers[0]["port"],
        "RANK": rank,
        "WORLD_SIZE": len(workers),
        "LOCAL_RANK": hosts[:rank].count(own["name"]),
        "ADDRESS": own["address"],
        "ADDRESSES": ",".join(dict.fromkeys(worker["address"] for worker in workers)),
        "ITERATIONS": job["iterations"],
        "PYTHONUNBUFFERED": 1,
        "TERM": "dumb",
    }
    with contextlib.suppress(ValueError):  # no interface has the address
        name = training_flows.interface(own["address"])
        variables["GLOO_SOCKET_IFNAME"] = name
        variables["NCCL_SOCKET_IFNAME"] = os.environ.get("NCCL_SOCKET_IFNAME", "={}".format(name))
    return {**os.environ, **{variable: str(value) for variable, value in variables.items()}}


def take_ordinary_priority():
    """Give up the real-time priority of this program, because a command that polls would take the whole CPU."""
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def wait_for_start(begins_ms):
    """Wait for the agreed start, and for `begins_ms` after it. Raises StoppedError, and ValueError for another line."""
    line = os.read(0, 4096).decode()
    if not line:
        raise StoppedError
    left_s = start_of(line) / 1e9 + begins_ms / 1e3 - time.monotonic()
    if select.select([0], [], [], max(0, left_s))[0]:
        raise StoppedError


def run(rank, job, options):
    """Run the worker.

    Raises ValueError and OSError for failures, and StoppedError.
    """
    refuse(job, "the command alone says when it ends")
    say("ready")
    wait_for_start(job["begins_ms"])
    if options["command"] is None:
        say("done", iterations=job["iterations"])
    else:
        Worker(rank, job, options).follow()


def end_descendants():
    """End all processes that the command started, also those that it left behind."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + END_TIMEOUT_S
        for process in descendants():
            with contextlib.suppress(OSError):
                os.kill(process, number)
        while descendants() and time.monotonic() < deadline:
            time.sleep(TICK_S)


def descendants():
    """Return the running processes below this one. Those that have ended are collected."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open("/proc/{}/stat".format(name)) as file:
            parents[int(name)] = int(file.read().rpartition(")")[2].split()[1])
    found, below = [], {os.getpid()}
    while below:
        below = {process for process, parent in parents.items() if parent in below}
        found += below
    return found


def main():
    """Run a worker from its command line to its end, and return the exit status."""
    rank, job, options = int(sys.argv[1]), json.loads(sys.argv[2]), json.loads(sys.argv[3])
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # what the command leaves behind has this parent
    try:
        run(rank, job, options)
    except StoppedError:
        say("stopped", reason="standard input was closed")
        return STOPPED
    except (ValueError, OSError) as error:
        say("error", message=str(error))
        return 1
    finally:
        end_descendants()
    return 0


if __name__ == "__main__":
    sys.exit(main())
