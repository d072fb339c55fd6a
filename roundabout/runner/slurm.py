# SPDX-License-Identifier: Apache-2.0
"""Slurm, controlled by its commands: arrays of jobs, each of which executes one trial of a run.

A job has the name of its run, so the run's folder suffices to find its jobs.
"""

import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from roundabout.core.errors import RoundaboutError, UsageError

ENGINE = "slurm"
ANSWER_TIMEOUT_S = (
    120  # time limit of a Slurm command; it gives up earlier itself unless the network drops its messages
)
LARGEST_ARRAY = 1000  # jobs in an array under Slurm's default, MaxArraySize=1001


class SlurmError(RoundaboutError):
    """Error for a missing Slurm, or for a job that Slurm rejects."""


@dataclass(frozen=True)
class Job:
    """The common properties of an array's jobs: the run, and how jobs use a node."""

    run: Path
    alone: bool  # True if each job needs a node of its own
    reference: bool = False

    @property
    def name(self) -> str:
        """Return the name of all jobs of this run."""
        return f"roundabout-{self.run.name}"

    @property
    def logs(self) -> Path:
        """Return the folder of the jobs' logs. Each file name begins with its node's name."""
        return self.run / ENGINE

    def script(self, keys: Sequence[str]) -> str:
        """Return the batch script of an array. The job with index i executes the trial `keys[i]`.

        Without keys, the job makes the plan of the run.
        """
        words = [sys.executable, "-m", "roundabout.cli.main", "trial", str(self.run)]
        call = shlex.join([*words, *(["--reference"] if self.reference else [])])
        lines = ["#!/bin/sh", shlex.join(["set", "--", *keys]), 'shift "$SLURM_ARRAY_TASK_ID"', f'exec {call} "$1"']
        return "\n".join(lines if keys else ["#!/bin/sh", f"exec {call}"]) + "\n"


@dataclass(frozen=True)
class Slurm:
    """A Slurm cluster to which this machine submits jobs, into `partition` or the default partition."""

    partition: str | None = None

    @classmethod
    def parse(cls, text: str) -> "Slurm":
        """Parse the value of `--executor`. Raises UsageError."""
        engine, colon, partition = text.partition(":")
        if engine != ENGINE or (colon and not partition):
            raise UsageError(f"--executor: found '{text}', expected {ENGINE} or {ENGINE}:PARTITION")
        return cls(partition or None)

    def check(self) -> None:
        """Raise SlurmError if Slurm or the partition is missing."""
        there = _call(["sinfo", "--noheader", "--format=%R"]).split()
        if self.partition and not there:
            raise SlurmError(
                f"found no partition {self.partition!r}: Slurm lists none to this user",
                "`sinfo --all` lists hidden ones; the cluster's administrators choose which of them accept your jobs",
            )
        if self.partition and self.partition not in there:
            raise SlurmError(
                f"found no partition {self.partition!r}, expected one of: {', '.join(there)}",
                f"--executor {ENGINE}:{there[0]}",
            )

    def submit(self, job: Job, keys: Sequence[str], after: Sequence[str] = (), node: str | None = None) -> str:
        """Submit an array with one job for each key, at most LARGEST_ARRAY, and return the array's id.

        The array begins after the jobs `after` have ended. `node` restricts it to one node. Without keys, one job makes
        the plan. Raises SlurmError.
        """
        options = {
            "job-name": job.name,
            "array": f"0-{max(len(keys), 1) - 1}",
            "output": str(job.logs / "%N.%A_%a.log"),
            "open-mode": "append",
            "partition": self.partition,
            "dependency": f"afterany:{':'.join(after)}" if after else None,
            "nodelist": node,
        }
        flags = ["--parsable", "--requeue", *(["--exclusive"] if job.alone else [])]
        said = [f"--{name}={value}" for name, value in options.items() if value is not None]
        answer = _call(["sbatch", *flags, *said], job.script(keys)).strip()
        number = answer.rpartition("\n")[2].partition(";")[0]  # of `17;cluster`, after lines of a site's plugins
        if not number.isdecimal():
            raise SlurmError(f"sbatch printed {answer[:200]!r}, expected the id of a job", "look at: squeue --me")
        return number

    def queue(self, job: Job) -> Counter[str]:
        """Return the number of the run's jobs in Slurm's queue, by state. Raises SlurmError."""
        said = _call(["squeue", "--noheader", "--array", f"--name={job.name}", "--format=%T %r"])
        found = (line.partition(" ") for line in said.splitlines())
        return Counter(f"{state} ({why})" if state == "PENDING" else state for state, _, why in found)

    def cancel(self, job: Job) -> None:
        """End all jobs of the run by SIGTERM. Raises SlurmError."""
        _call(["scancel", f"--name={job.name}"])


def _call(words: Sequence[str], reported: str = "") -> str:
    """Return the output of one of Slurm's programs, without the names of clusters. Raises SlurmError."""
    try:
        done = subprocess.run(words, input=reported, capture_output=True, text=True, timeout=ANSWER_TIMEOUT_S)
    except FileNotFoundError:
        raise SlurmError(
            f"found no {words[0]} on this machine, expected Slurm's",
            "submit where Slurm takes jobs, or leave out --executor",
        ) from None
    except subprocess.TimeoutExpired:
        raise SlurmError(f"Slurm did not answer {words[0]} within {ANSWER_TIMEOUT_S} s") from None
    except OSError as error:
        raise SlurmError(f"cannot run {words[0]}: {error.strerror}") from error
    if done.returncode != 0:
        why = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise SlurmError(f"Slurm did not take {words[0]}: {why.removeprefix(f'{words[0]}: ').removeprefix('error: ')}")
    # With SLURM_CLUSTERS, the jobs of each cluster follow such a line, also with --noheader.
    return "".join(line for line in done.stdout.splitlines(keepends=True) if not line.startswith("CLUSTER: "))
