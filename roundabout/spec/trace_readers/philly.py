# SPDX-License-Identifier: Apache-2.0
"""Microsoft's Philly trace: `cluster_job_log`, a JSON list of jobs, or one job after another (JSON lines).

Source: msr-fiddle/philly-traces, README (Jeon et al., USENIX ATC'19). A job's GPUs are those of its first attempt. Its
duration is the sum of its attempts whose start and end are known.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from roundabout.spec.assembly.validation_errors import first_fault
from roundabout.spec.base import Name
from roundabout.spec.errors import SpecError, quote_value
from roundabout.spec.reader.json_source import parse
from roundabout.spec.reader.yaml_source import dotted_path, shown_path
from roundabout.spec.trace import SubmittedJob
from roundabout.spec.trace_readers.rows import Row, load_text
from roundabout.spec.trace_readers.values import Instant, InstantIfKnown, elapsed


class Server(Row):
    """A server that takes part in an attempt, and its GPUs."""

    gpus: list[str]


class Attempt(Row):
    """An attempt to run a job: start, end, and the servers used."""

    start_time: InstantIfKnown = None
    end_time: InstantIfKnown = None
    detail: list[Server]


class LoggedJob(Row):
    """A job in the log, with all its attempts."""

    jobid: Name
    submitted_time: Instant
    attempts: list[Attempt]

    @property
    def gpus(self) -> int:
        """Return the number of GPUs of the first attempt, or 0 without any attempt."""
        return sum(len(server.gpus) for attempt in self.attempts[:1] for server in attempt.detail)

    @property
    def ran_s(self) -> float | None:
        """Return the job's duration in seconds, or None if it is unknown."""
        ran = [elapsed(attempt.start_time, attempt.end_time) for attempt in self.attempts]
        known = [each for each in ran if each is not None]
        return sum(known) if known else None


NON_SPACE = re.compile(r"[^ \t\r\n]")  # any character but JSON's white space


def read(path: Path) -> tuple[SubmittedJob, ...]:
    """Return the jobs of a `cluster_job_log`. Raises SpecError for the file's first fault."""
    return tuple(
        SubmittedJob(name=job.jobid, at_s=job.submitted_time, gpus=job.gpus, ran_s=job.ran_s)
        for job in _logged(load_text(path), shown_path(path))
        if job.gpus
    )


def _logged(text: str, file: str) -> Iterator[LoggedJob]:
    is_one_after_another = text.lstrip().startswith("{")
    for line, part in _values(text) if is_one_after_another else [(1, text)]:
        content = parse(part, file, line)
        jobs = [content.root] if is_one_after_another else content.root
        if not isinstance(jobs, list):
            raise content.error((), quote_value(jobs), "a JSON list of jobs, or one job a line")
        for number, job in enumerate(jobs):
            try:
                yield LoggedJob.model_validate(job)
            except ValidationError as error:
                fault, found, expected = first_fault(error)
                location = fault if is_one_after_another else (number, *fault)
                mark = content.find(location)
                raise SpecError(file, found, expected, field=dotted_path(location), line=mark and mark.line) from None


def _values(text: str) -> Iterator[tuple[int, str]]:
    """Yield each JSON value of `text` with the line in which it begins, and the rest as one more if that is no JSON."""
    decoder = json.JSONDecoder()
    line, end = 1, 0
    while value := NON_SPACE.search(text, end):
        line += text.count("\n", end, value.start())
        try:
            _, end = decoder.raw_decode(text, value.start())
        except (ValueError, RecursionError):
            end = len(text)
        yield line, text[value.start() : end]
        line += text.count("\n", value.start(), end)
