# SPDX-License-Identifier: Apache-2.0
"""Storage of workers' profiler records with their trial, as records/<job>-<rank>.<format>.json.gz."""

import base64
import re
from typing import Any

from roundabout.runner.tables.rows import RecordError
from roundabout.runner.trial.jobs import Worker
from roundabout.store import Attempt, files

RECORDS = "records"
FORMAT = re.compile(r"[a-z0-9_-]{1,32}")


def store_record(attempt: Attempt, worker: Worker, event: dict[str, Any]) -> None:
    """Store the profiler record in a worker's event `record` (trainers/PROTOCOL.md). Raises RecordError if invalid."""
    kind, packed = event.get("format"), event.get("gzip_base64")
    try:
        if not (isinstance(kind, str) and FORMAT.fullmatch(kind)):
            raise ValueError(f"the format {kind!r}")
        content = base64.b64decode(packed or "", validate=True)
        if not content:
            raise ValueError("nothing")
    except (ValueError, TypeError) as error:
        raise RecordError(f"{worker} said a record of {error}, expected a format and what was recorded") from error
    path = files.make_directory(attempt.path / RECORDS) / f"{worker.job}-{worker.rank}.{kind}.json.gz"
    with files.disk_errors(path), files.create_file(path) as file:
        file.write(content)
