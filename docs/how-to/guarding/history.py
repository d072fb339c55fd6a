# SPDX-License-Identifier: Apache-2.0
"""The means of every run of an experiment, the oldest first, as CSV: `python history.py guard > history.csv`."""

import csv
import sys
from datetime import datetime
from pathlib import Path

from roundabout import query
from roundabout.store import Run

(EXPERIMENT,) = sys.argv[1:]
MEANS = "select variant, job, avg(iteration_ms) as ms from iterations group by all order by all"

rows = []
for run in sorted(Run.all(Path("runs")), key=lambda run: run.id):
    if run.experiment == EXPERIMENT:
        began = datetime.strptime(f"{run.id[:15]}+0000", "%Y%m%dT%H%M%S%z").isoformat()
        means = {f"{row['variant']}-{row['job']}": row["ms"] for row in query(run, MEANS).to_pylist()}
        rows.append({"time": began, "commit": run.id, **means})
table = csv.DictWriter(sys.stdout, rows[0] if rows else ("time", "commit"))
table.writeheader()
table.writerows(rows)
