# SPDX-License-Identifier: Apache-2.0
"""A trace in Philly's format on a large fabric: time and memory to plan and play it, and what contention takes.

    python benchmarks/trace_on_fabric.py [--fabric NAME] [--servers N] [--oversubscription N] [--jobs N] [--load X]
                                         [--routing NAME,...] [--compression X] [--scheduler NAME] [--models NAME]
                                         [--seed N] [--json] [--short]

The trace is a made-up file in Philly's format (a JSON list). Its jobs arrive as a Poisson process that keeps `--load`
of the GPUs busy. They have 1 to 256 GPUs: 30, 10, 15, 20, 12, 7, 4, 1.5 and 0.5 % of them 1, 2, 4 and so on. They run
for a lognormal time, median 10 minutes and sigma 1.5, from 1 minute to 12 hours. All of these are guesses.

Links have 50 Gbit/s, the NICs of the thesis that the models are from. Routings are static, ecmp, rail and pxn (rail
with PXN). Each is played in a process of its own. Times are CPU seconds, and memory is the process's peak. The lost
share is that of all time in iterations of jobs with several workers that is beyond the iterations' time alone.
"""

import json
import random
import resource
import sys
import tempfile
import time
from argparse import Namespace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.shared.command import measure_in_process, print_result, read_options
from roundabout.models.fluid import residual_of_schedules
from roundabout.plan import make_plan, with_simulated_jobs
from roundabout.plan.routes import record_routes
from roundabout.spec import TrialSpec, load_experiment
from roundabout.spec.fabrics import FABRICS, write_topology
from roundabout.testbeds.fluid.engine_trial import ComputedTrial, compute_trial

GPUS = dict(
    zip((1 << power for power in range(9)), (0.30, 0.10, 0.15, 0.20, 0.12, 0.07, 0.04, 0.015, 0.005), strict=True)
)
"""Number of a job's GPUs, and the share of jobs with it."""

MEDIAN_S, SIGMA = 600.0, 1.5
SHORTEST_S, LONGEST_S = 60.0, 12 * 3600.0
BEGIN = datetime(2017, 10, 2, 8, 0, 0)  # a Monday in Philly's months

EXPERIMENT = """\
schema: 1
name: trace
about: A trace in Philly's format on a {fabric}
topology: fabric
line_rate_gbps: 50
routing: {{{routing}}}
seed: {seed}
transport: {{name: dcqcn, T_us: 125}}
cluster:
  scheduler: {scheduler}
  trace:
    kind: philly
    file: cluster_job_log
    models: [{models}]
    workers: {{least: 1, most: 256}}
    compression: {compression}
factors: {{variant: {{{scheduler}: {{}}}}}}
"""


def make_jobs(count: int, gpus: int, load: float, rng: random.Random) -> list[dict[str, Any]]:
    """Return jobs as in Philly's cluster_job_log."""
    sizes = rng.choices(list(GPUS), list(GPUS.values()), k=count)
    ran_s = [min(max(rng.lognormvariate(0, SIGMA) * MEDIAN_S, SHORTEST_S), LONGEST_S) for _ in sizes]
    gap_s = sum(size * each for size, each in zip(sizes, ran_s, strict=True)) / count / (load * gpus)
    at, jobs = BEGIN, []
    for number, (size, each) in enumerate(zip(sizes, ran_s, strict=True)):
        at += timedelta(seconds=rng.expovariate(1 / gap_s))
        detail = [{"ip": "m1", "gpus": [f"gpu{gpu}" for gpu in range(size)]}]
        attempt = {"start_time": _time(at), "end_time": _time(at + timedelta(seconds=each)), "detail": detail}
        jobs.append(
            {"status": "Pass", "vc": "a", "jobid": f"j{number}", "attempts": [attempt], "submitted_time": _time(at)}
        )
    return jobs


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S}"


def measure(requested: Namespace, routing: str) -> dict[str, Any]:
    """Return seconds, memory and lost time of the trace with a routing, in this process."""
    fabric = FABRICS[requested.fabric](requested.servers, requested.oversubscription).topology("fabric")
    gpus = len(fabric.hosts) * fabric.gpus_per_host
    found: dict[str, Any] = {"fabric": requested.fabric, "hosts": len(fabric.hosts), "GPUs": gpus, "routing": routing}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.yaml")
        path.with_name("topologies").mkdir()
        path.with_name("topologies").joinpath("fabric.yaml").write_text(write_topology(fabric))
        jobs = make_jobs(requested.jobs, gpus, requested.load, random.Random(requested.seed))
        path.with_name("cluster_job_log").write_text(json.dumps(jobs))
        rule = {"pxn": "name: rail, pxn: true"}.get(routing, f"name: {routing}")
        path.write_text(EXPERIMENT.format(**vars(requested) | {"routing": rule}))
        begin = time.process_time()
        experiment = load_experiment(path)
        found["read s"] = time.process_time() - begin
    begin = time.process_time()
    trial = make_plan(experiment, {}, {}).trials[0]
    found["plan s"] = time.process_time() - begin
    begin = time.process_time()
    spec, timeline = with_simulated_jobs(trial.spec, trial.seed)
    found["schedule s"] = time.process_time() - begin
    begin = time.process_time()
    played = compute_trial(spec, residual_of_schedules(spec, {}))
    found["play s"] = time.process_time() - begin
    begin = time.process_time()
    found["routes"] = len(record_routes(spec).get("routes", ()))
    found["routes s"] = time.process_time() - begin
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    lost = lost_share(spec, played)
    waited_s = sum((life.started_s or 0.0) - life.arrived_s for life in timeline.histories) / len(timeline.histories)
    iterations = sum(each.shape[1] for each in played.iterations.values())
    sent = {"allocations": len(timeline.allocations), "jobs that send": len(spec.jobs), "iterations": iterations}
    return found | sent | {"trace s": played.last_ms / 1e3, "waited s": waited_s, "lost": lost, "peak MB": peak_mb}


def lost_share(spec: TrialSpec, played: ComputedTrial) -> float:
    """Return the share of all time in iterations that is beyond their time alone."""
    took_ms = alone_ms = 0.0
    for name, times in played.iterations.items():
        took_ms += float((times[:, :, 2].max(axis=0) - times[:, :, 0].min(axis=0)).sum()) if times.size else 0.0
        alone_ms += times.shape[1] * spec.jobs[name].profile.alone_ms
    return max(1 - alone_ms / took_ms, 0.0)


def main() -> None:
    """Measure each routing, and print a line for each, or a list as JSON."""
    fabrics = ("leaf-spine", *(name for name in FABRICS if name != "leaf-spine"))
    size = {"fabric": fabrics, "servers": 1024, "oversubscription": 1}
    trace = {"jobs": 200, "load": 0.8, "compression": 60.0, "models": "mixed", "seed": 1}
    short = {"servers": 256, "jobs": 40, "scheduler": "random"}
    options = read_options(__doc__, short, **size, **trace, routing="ecmp", scheduler="fifo")
    found = [measure_in_process(measure, options, routing) for routing in options.routing.split(",")]
    print_result(options, found, map(_line, found))


def _line(found: dict[str, Any]) -> str:
    return ", ".join(f"{name} {_shown(value)}" for name, value in found.items())


def _shown(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
