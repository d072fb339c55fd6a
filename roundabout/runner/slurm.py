# SPDX-License-Identifier: Apache-2.0
"""Slurm, as its commands show it: arrays of jobs, each of which does one trial of a run.

A job's name is its run's: so everybody finds the jobs of a run who has its folder.
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
ANSWER_S = 120  # Slurm's own programs give up earlier, unless the network swallows their messages
LARGEST_ARRAY = 1000  # of Slurm's default, MaxArraySize=1001


class SlurmError(RoundaboutError):
    """Slurm is not there, or does not take a job."""


@dataclass(frozen=True)
class Job:
    """What an array's jobs have in common: the run, and what its testbeds ask of a node."""

    run: Path
    alone: bool  # nothing else runs on its node meanwhile
    reference: bool = False

    @property
    def name(self) -> str:
        """Of all jobs of this run."""
        return f"roundabout-{self.run.name}"

    @property
    def logs(self) -> Path:
        """Where jobs say what went wrong, a file each that begins with its node's name."""
        return self.run / ENGINE

    def script(self, keys: Sequence[str]) -> str:
        """What each job of an array runs: the trial of its own number; without keys, the making of the plan."""
        words = [sys.executable, "-m", "roundabout.cli.main", "trial", str(self.run)]
        call = shlex.join([*words, *(["--reference"] if self.reference else [])])
        lines = ["#!/bin/sh", shlex.join(["set", "--", *keys]), 'shift "$SLURM_ARRAY_TASK_ID"', f'exec {call} "$1"']
        return "\n".join(lines if keys else ["#!/bin/sh", f"exec {call}"]) + "\n"


@dataclass(frozen=True)
class Slurm:
    """A cluster that takes jobs from this machine, into one partition or into its default one."""

    partition: str | None = None

    @classmethod
    def asked(cls, text: str) -> "Slurm":
        """What `--on` says. Raises UsageError."""
        engine, colon, partition = text.partition(":")
        if engine != ENGINE or (colon and not partition):
            raise UsageError(f"--on: found '{text}', expected {ENGINE} or {ENGINE}:PARTITION")
        return cls(partition or None)

    def check(self) -> None:
        """Raise SlurmError where there is no Slurm, or no such partition."""
        there = _said(["sinfo", "--noheader", "--format=%R"]).split()
        if self.partition and not there:
            raise SlurmError(
                f"found no partition {self.partition!r}: Slurm lists none to this user",
                "`sinfo --all` shows hidden ones; ask the cluster's administrators which of them takes your jobs",
            )
        if self.partition and self.partition not in there:
            raise SlurmError(
                f"found no partition {self.partition!r}, expected one of: {', '.join(there)}",
                f"--on {ENGINE}:{there[0]}",
            )

    def submit(self, job: Job, keys: Sequence[str], after: Sequence[str] = (), node: str | None = None) -> str:
        """The id of an array with a job a key, at most LARGEST_ARRAY; it begins when those `after` ended.

        Without keys one job makes the plan. Raises SlurmError.
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
        return _said(["sbatch", *flags, *said], job.script(keys)).partition(";")[0].strip()

    def queue(self, job: Job) -> Counter[str]:
        """How many jobs of the run there still are, by what Slurm says of them. Raises SlurmError."""
        said = _said(["squeue", "--noheader", "--array", f"--name={job.name}", "--format=%T %r"])
        found = (line.partition(" ") for line in said.splitlines())
        return Counter(f"{state} ({why})" if state == "PENDING" else state for state, _, why in found)

    def cancel(self, job: Job) -> None:
        """End all jobs of the run, as SIGTERM does. Raises SlurmError."""
        _said(["scancel", f"--name={job.name}"])


def _said(words: Sequence[str], told: str = "") -> str:
    """What one of Slurm's programs prints. Raises SlurmError."""
    try:
        done = subprocess.run(words, input=told, capture_output=True, text=True, timeout=ANSWER_S)
    except FileNotFoundError:
        raise SlurmError(
            f"found no {words[0]} on this machine, expected Slurm's", "submit where Slurm takes jobs, or leave out --on"
        ) from None
    except subprocess.TimeoutExpired:
        raise SlurmError(f"Slurm did not answer {words[0]} within {ANSWER_S} s") from None
    except OSError as error:
        raise SlurmError(f"cannot run {words[0]}: {error.strerror}") from error
    if done.returncode != 0:
        why = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise SlurmError(f"Slurm did not take {words[0]}: {why.removeprefix(f'{words[0]}: ').removeprefix('error: ')}")
    return done.stdout
