# SPDX-License-Identifier: Apache-2.0
"""Skipping of iterations in a steady state: error of iteration times, its bound, and what it saves, scene by scene.

    python benchmarks/packet_steady_states.py [--scenes N] [--seeds N] [--first-seed N] [--short] [--json]

Each scene is a trial of an experiment of the catalog, shortened, without jitter of computing times unless it says so,
or a made-up one. It is played to its end and, by the same seed, with `skip_within` of 2 %. Errors are the largest over
all workers of the differences of mean and of median iteration times, as shares of the iteration time. They are held
against the bound that the shortened trial states. Times are CPU seconds of one processor.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import t

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import packet_engine
from benchmarks.shared.command import print_result, read_options
from roundabout.cli.overrides import parse_overrides
from roundabout.models.packets import Fabric, PlayedTrial, play_trial
from roundabout.models.packets.steady_state import refusal
from roundabout.models.packets.structures import PS_PER_MS
from roundabout.spec import TrialSpec, load_experiment

Times = npt.NDArray[np.float64]

WITHIN = 0.02
ITERATIONS = 40
TENTH = "resized={compute: 0.1, bytes: 0.1}"
POD = "resized={compute: 0.003, bytes: 0.003}"
JITTER = 0.005
"""Of jobs that do not say otherwise."""
LATER = 1.01
"""How many times as long as the first job's a job's computing takes where periods differ."""


STATISTICS: dict[str, Callable[..., Times]] = {"mean": np.mean, "median": np.median}


class Scene(NamedTuple):
    """A trial by its name, and a function that makes it."""

    name: str
    make: Callable[[], TrialSpec]


def of_catalog(experiment: str, *only: str, fields: tuple[str, ...] = (TENTH,), **changes: Any) -> TrialSpec:
    """Return the first trial of these levels, with `--set` of fields and changes of the trial, without jitter."""
    loaded = load_experiment(experiment, changes=parse_overrides(fields, only, None))
    cell = next(each for each in loaded.cells if {*map(str, each.levels.values())}.issuperset(only))
    spec = without_jitter(cell.spec).model_copy(update={"iterations": ITERATIONS, **changes})
    jobs = {name: job.model_copy(update={"iterations": None, "departs_ms": None}) for name, job in spec.jobs.items()}
    spec = spec.model_copy(update={"jobs": jobs})
    return spec.with_one_job(next(iter(jobs))) if spec.one_job_at_a_time else spec


def without_jitter(spec: TrialSpec, jitter: float = 0.0) -> TrialSpec:
    return spec.model_copy(
        update={"jobs": {name: job.model_copy(update={"jitter": jitter}) for name, job in spec.jobs.items()}}
    )


def with_two_periods(spec: TrialSpec, factor: float) -> TrialSpec:
    """Return a trial whose last job computes `factor` times as long."""
    *_, (name, job) = spec.jobs.items()
    phases = [
        each.model_copy(update={"compute_ms": factor * each.compute_ms}) if each.compute_ms else each
        for each in job.profile.phases
    ]
    longer = job.model_copy(update={"profile": job.profile.model_copy(update={"phases": tuple(phases)})})
    return spec.model_copy(update={"jobs": {**spec.jobs, name: longer}})


def tree(iterations: int) -> TrialSpec:
    """Return a trial of eight jobs that meet on a tree."""
    return without_jitter(packet_engine.experiment(16, 1e6)).model_copy(update={"iterations": iterations})


VGG19 = ("unfair-vgg19", "fig-1")
MANY = ("resized={compute: 0.2, bytes: 0.1}",)
SIX = ("resized={compute: 0.5, bytes: 0.1}",)
SCENES = (
    Scene("VGG19 alone, DCQCN", lambda: of_catalog(*VGG19, "alone")),
    Scene("two VGG19, DCQCN, fair", lambda: of_catalog(*VGG19, "fair")),
    Scene("two VGG19, DCQCN, unfair", lambda: of_catalog(*VGG19, "unfair")),
    Scene("the same, full size", lambda: of_catalog(*VGG19, "unfair", fields=())),
    Scene("ECMP, two jobs apart", lambda: of_catalog("ecmp-collision", "apart")),
    Scene("ECMP, two jobs meet", lambda: of_catalog("ecmp-collision", "meet")),
    Scene("rails, two rings", lambda: of_catalog("rails", "ring")),
    Scene("rails, experts meet", lambda: of_catalog("rails", "meet")),
    Scene("one job, Reno", lambda: of_catalog("mltcp-vgg19", "saturating", "reno", "alone")),
    Scene("two jobs, Reno, fair", lambda: of_catalog("mltcp-vgg19", "saturating", "reno", "fair")),
    Scene("two jobs, CUBIC, fair", lambda: of_catalog("mltcp-vgg19", "saturating", "cubic", "fair")),
    Scene("two jobs, DCTCP, fair", lambda: of_catalog("mltcp-vgg19", "saturating", "dctcp", "fair")),
    Scene("two jobs, MLTCP-Reno", lambda: of_catalog("mltcp-vgg19", "saturating", "reno", "mltcp-reno")),
    Scene("two jobs, MLTCP-DCTCP", lambda: of_catalog("mltcp-vgg19", "saturating", "dctcp", "mltcp-dctcp")),
    Scene("two jobs, MLTCP-DCQCN", lambda: of_catalog("mltcp-vgg19", "saturating", "dcqcn", "mltcp-dcqcn")),
    Scene("three jobs, DCTCP, fair", lambda: of_catalog("mltcp-many", "three", "fair", fields=MANY)),
    Scene("three jobs, MLTCP-DCTCP", lambda: of_catalog("mltcp-many", "three", "mltcp", fields=MANY)),
    Scene("six jobs, MLTCP-DCTCP", lambda: of_catalog("mltcp-many", "six", "mltcp", fields=SIX)),
    Scene("eight jobs on a tree, DCQCN", lambda: tree(ITERATIONS)),
    Scene("pod, rails", lambda: of_catalog("pod-collisions", "rail", "1", fields=(POD,), iterations=10)),
    Scene("pod, ECMP", lambda: of_catalog("pod-collisions", "ecmp", "1", fields=(POD,), iterations=10)),
    Scene(
        "pod, units of two switches", lambda: of_catalog("pod-collisions", "units", "1", fields=(POD,), iterations=10)
    ),
    Scene("two VGG19, periods 1 % apart", lambda: with_two_periods(of_catalog(*VGG19, "fair"), LATER)),
    Scene("two VGG19, jitter", lambda: without_jitter(of_catalog(*VGG19, "fair"), JITTER)),
)


def lengths_ms(trial: PlayedTrial) -> dict[str, Times]:
    return {name: (each["end_ps"] - each["start_ps"]) / PS_PER_MS for name, each in trial.iterations.items()}


def measure(scene: Scene, seed: int) -> dict[str, Any]:
    """Return the figures of one scene: shares of all iterations, and of the iteration time."""
    spec = scene.make()
    trials, cpu_s = [], []
    for within in (None, WITHIN):
        begin = time.process_time()
        trials.append(play_trial(spec.model_copy(update={"skip_within": within}), seed, Fabric()))
        cpu_s.append(time.process_time() - begin)
    exact_ms, short_ms = map(lengths_ms, trials)
    shares = [errors(exact_ms[job], short_ms[job], each.bound_ms) for job, each in trials[1].skipped.items()]
    skipped = sum(each.skipped for each in trials[1].skipped.values())
    return {
        "scene": scene.name,
        "seed": seed,
        "jobs": len(spec.jobs),
        "refused": refusal(spec),
        "skipped": skipped / sum(each.shape[1] for each in exact_ms.values()),
        **{name: max((each[name] for each in shares), default=0.0) for name in ("mean", "median", "bound")},
        "is_within": all(max(each["mean"], each["median"]) <= each["bound"] for each in shares),
        "exact_s": cpu_s[0],
        "s": cpu_s[1],
    }


def errors(exact_ms: Times, short_ms: Times, bound_ms: float) -> dict[str, float]:
    """Return the largest errors of a job's workers, and their bound, as shares of its iteration time."""
    whole_ms = exact_ms.mean()
    found = {name: np.abs(of(short_ms, axis=1) - of(exact_ms, axis=1)).max() for name, of in STATISTICS.items()}
    return {name: float(each / whole_ms) for name, each in {**found, "bound": bound_ms}.items()}


def row(found: dict[str, Any]) -> str:
    errors = f"{100 * found['mean']:10.4f}{100 * found['median']:11.4f}{100 * found['bound']:10.4f}"
    what = f"{found['scene']:30}{found['jobs']:5}{found['seed']:6}{100 * found['skipped']:11.0f}"
    remark = "" if found["is_within"] else "  beyond its bound"
    return what + errors + f"{found['exact_s'] / found['s']:10.2f}{remark}"


def main() -> None:
    t.ppf(0.5, 1)  # is imported before times are measured
    options = read_options(__doc__, {"scenes": 1}, scenes=len(SCENES), seeds=1, first_seed=1, first=0)
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    heading = f"{'scene':30} jobs  seed skipped, %   mean, %  median, %  bound, %  speed-up"
    found = []
    for scene in SCENES[options.first : options.scenes]:
        for seed in seeds:
            found.append(measure(scene, seed))
            print(row(found[-1]), file=sys.stderr, flush=True)
    shortened = [each for each in found if each["skipped"]]
    within = sum(each["is_within"] for each in shortened)
    gain = sum(each["exact_s"] for each in found) / sum(each["s"] for each in found)
    last = f"within their bounds: {within} of {len(shortened)} shortened trials; CPU time, all / shortened: {gain:.2f}"
    print_result(options, found, [heading, *map(row, found), last])


if __name__ == "__main__":
    main()
