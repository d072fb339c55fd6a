# SPDX-License-Identifier: Apache-2.0
"""Random mixes of jobs in the lab: what advice expects of them beside what is measured.

    sudo .venv/bin/python -m tests.analysis.advice.advised_mixes

First each job runs alone; from these counters advice is made, and an experiment of it, which is run next. The mixes are
the first ten of test_advice_mixes.py, at the rate of the lab's link in place of 50 Gbit/s.
"""

import argparse
from pathlib import Path

import yaml

from analysis.advice import advice_check
from analysis.advice.advice import Verdict, advise_group
from analysis.advice.observed_jobs import observe_run
from roundabout.cli.main import main as roundabout
from roundabout.models.fluid import ITERATIONS
from roundabout.spec import load_topology
from roundabout.store import Run
from tests.analysis.advice import random_jobs
from tests.analysis.run_verdicts import judge_run


def named(seed):
    """The jobs of a mix, by names that no other mix has."""
    return {f"m{seed}-{name}": job for name, job in random_jobs.mix(seed).items()}


def alone(seeds):
    """The experiment in which each job of these mixes runs alone."""
    levels = {f"mix-{seed}": _level(named(seed)) for seed in seeds}
    return {
        "name": "mixes-alone",
        "about": "Random jobs, each alone: what advice is made of",
        "iterations": ITERATIONS,
        "one_job_at_a_time": True,
        "transport": {"name": "dcqcn", "T_us": 125},
        "profiles": {name: _profile(job, seed) for seed in seeds for name, job in named(seed).items()},
        "factors": {"mix": levels},
    }


def _level(jobs):
    pairs = max(len(jobs), 2)
    hosts = {name: [f"s{place}", f"s{place + pairs}"] for place, name in enumerate(jobs)}
    played = {name: {"profile": name, "workers": hosts[name], "jitter": job.jitter} for name, job in jobs.items()}
    return {"topology": f"dumbbell-{pairs}x{pairs}", "jobs": played}


def _profile(job, seed):
    slower = load_topology("dumbbell-2x2").bottleneck.payload_rate_gbps / random_jobs.CAPACITY_GBPS
    source = f"drawn: tests/analysis/advice/random_jobs.py, seed {seed}"
    phases = [
        {"name": f"phase-{place}", "source": source}
        | ({"compute_ms": float(ms)} if size is None else {"bytes": round(size * slower), "alone_ms": float(ms)})
        for place, (ms, size) in enumerate(job.phases, 1)
    ]
    return {"model": "none", "source": source, "phases": phases}


def advised(run, seeds):
    """What is advised for each mix, and the experiment that checks it."""
    jobs, capacity_gbps = observe_run(run)
    found = {seed: advise_group(jobs, {"link": list(named(seed))}, capacity_gbps) for seed in seeds}
    return found, advice_check.experiment("mixes-advised", run, jobs, list(found.values()))


def played(document, options):
    """A run of an experiment, and its report."""
    path = options.runs / f"{document['name']}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    if status := roundabout(["run", str(path), "--runs", str(options.runs), "--testbed", options.testbed]):
        raise SystemExit(status)
    return Run.open(document["name"], options.runs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--testbed", default="lab")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--seeds", type=int, nargs="+", default=range(10))
    options = parser.parse_args()
    found, document = advised(played(alone(options.seeds), options), options.seeds)
    verdicts = judge_run(played(document, options))
    for seed, met in found.items():
        print(f"mix {seed}: {met.verdict.value}; {met.why}")
    for each in verdicts:
        print(
            f"{next(iter(each.at.values()))}: {each.of}: {each.source}, {each.expected}: {each.found}, {each.verdict}"
        )
    inside = sum(each.verdict == "pass" for each in verdicts)
    none = sum(met.verdict is Verdict.NONE for met in found.values())
    print(f"{inside} of {len(verdicts)} figures inside; no advice for {none} of {len(found)} mixes")


if __name__ == "__main__":
    main()
