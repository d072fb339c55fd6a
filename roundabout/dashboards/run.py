# SPDX-License-Identifier: Apache-2.0
"""Metrics of the current run, from its progress file, in the papers' units."""

from pathlib import Path

from roundabout.runner import progress_file
from roundabout.runner.exporter_targets import Series
from roundabout.runner.progress_events import Progress


def run_series(runs: Path) -> list[Series]:
    """Return the series of the run that holds this machine's lease, or else of the latest running run below `runs`."""
    path = progress_file.run_on_machine() or next(iter(progress_file.running_runs(runs)[::-1]), None)
    reported = progress_file.read(path) if path else None
    return progress_series(reported.progress) if reported and reported.is_live else []


def progress_series(now: Progress) -> list[Series]:
    """Return the series that describe a run's progress."""
    trial = now.trial
    about = {
        "experiment": now.experiment,
        "run": now.run,
        "trial": trial.key if trial else "",
        "variant": trial.variant if trial else "",
        "repetition": str(trial.repetition) if trial else "",
    }
    found: list[Series] = [
        ("roundabout_run_info", about, 1),
        ("roundabout_run_trials", {}, now.trials),
        ("roundabout_run_done_trials", {}, now.done),
    ]
    for name, job in now.jobs.items():
        labels = {"job": name}
        found += [
            ("roundabout_job_iterations_total", labels, job.done),
            ("roundabout_job_planned_iterations", labels, job.iterations),
            ("roundabout_job_last_iteration_seconds", labels, job.last_ms / 1e3),
        ]
    for name, crossing in now.cross_traffic.items():
        labels = {"traffic": name}
        found.append(("roundabout_cross_traffic_asked_bytes_per_second", labels, crossing.asked_gbps * 1e9 / 8))
        if crossing.sent_gbps is not None:
            found.append(("roundabout_cross_traffic_sent_bytes_per_second", labels, crossing.sent_gbps * 1e9 / 8))
    return found
