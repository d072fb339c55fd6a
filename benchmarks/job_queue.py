# SPDX-License-Identifier: Apache-2.0
"""Queues of jobs on a leaf-spine beside MonkeyTree's simulator (github.com/hipersys-team/MonkeyTree), job by job.

    python benchmarks/job_queue.py [--short] [--json]
    python benchmarks/job_queue.py --peer GOLDEN_SPINE --jobs FOLDER [--times N] [--rounds N]

A scene (benchmarks/shared/monkeytree_scenes.json) has jobs that start at once on given servers, and jobs that arrive
later. The file has the times at which that simulator started and ended each job, with and without the pipelines among
them. Here both choose the same spines: under ECMP by the same hash, and under Crux by the same rule. Under perfect
routing the colors of edges are not unique, so the spines differ.

`--peer` runs its program golden_spine on the scenes, in turns with ours, and prints the CPU seconds and the memory of
both. FOLDER contains `jobs/`, with the job files of hipersys-team/MonkeyTreeArtifact. `--times` multiplies iterations.
CPU seconds of ours are those of the simulation, in a process of its own, without the import of modules.
"""

import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.shared.command import children_cpu_s, measure_in_process, print_result, read_options, take_turns
from roundabout.models.cluster.job_queue.job_shape import shape_of
from roundabout.models.cluster.job_queue.rules import RULES, SpineRule
from roundabout.models.cluster.job_queue.simulator import QueueCluster, simulate_queue
from roundabout.models.cluster.job_queue.spines import Flows
from roundabout.models.cluster.state import Request
from roundabout.models.cluster.timeline import JobHistory
from roundabout.spec import Topology, load_experiment
from roundabout.spec.job_mix import JobMix, JobType

SCENES = Path(__file__).parent / "shared" / "monkeytree_scenes.json"
BYTES_PER_MS = 5e7  # of 400 Gbit/s
PER_SERVER = 8  # GPUs
HASH_SEED = 42
"""Of golden_spine's ECMP, which takes XXH64 of the sender, the receiver and the job."""
PRIMES = tuple(
    np.uint64(prime)
    for prime in (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
)
"""Of XXH64, as github.com/Cyan4973/xxHash, doc/xxhash_spec.md, numbers them."""
FABRIC = ("0", "8", "0", "16", "1024", "0", "0", "64")
"""Arguments of golden_spine: all jobs, servers of 8 GPUs, no limit of slowdowns, 16 spines, 1,024 GPUs, its default
threshold, no delay after moves, and 64 GPUs a leaf."""
COMPLETED = re.compile(r"JobComplete (\d+) submit=\d+ schedule=(\d+) complete=(\d+)")
Uints = npt.NDArray[np.uint64]


class SceneJob(NamedTuple):
    """A job of a scene, and when MonkeyTree's simulator started and ended it, s: with pipelines, and without."""

    type: str
    gpus: int
    iterations: int
    arrives_s: float
    servers: tuple[int, ...]  # empty for a job that is placed as it starts
    among_all_s: tuple[float, float]
    among_others_s: tuple[float, float] | None  # None for a pipeline

    @property
    def peer_type(self) -> str:
        """Return the type's name in the job files."""
        return self.type.replace("-", "_")


class Scene(NamedTuple):
    """Jobs of one load, under one choice of paths."""

    load: float
    paths: str
    jobs: tuple[SceneJob, ...]


def read_scenes() -> Iterator[Scene]:
    """Yield the scenes of the stored file."""
    for scene in json.loads(SCENES.read_text(encoding="utf-8"))["scenes"]:
        jobs = tuple(SceneJob(*job[:4], *(each and tuple(each) for each in job[4:])) for job in scene["jobs"])
        yield Scene(scene["load"], scene["paths"], jobs)


def without_pipelines(scene: Scene) -> Scene:
    """Return a scene without its pipelines, with the times at which the others ran then."""
    others = [job._replace(among_all_s=job.among_others_s) for job in scene.jobs if job.among_others_s]
    return scene._replace(jobs=tuple(others))


def xxh64_spines(flows: Flows, spines: int, seed: int) -> npt.NDArray[np.int64]:
    """Choose spines as golden_spine's ECMP does."""
    del seed
    one, two, three, four, five = PRIMES
    senders, receivers = flows.nics.astype(np.uint64)
    words = senders | receivers << np.uint64(32), flows.jobs.astype(np.uint64)
    with np.errstate(over="ignore"):
        mixed = np.full(flows.jobs.size, np.uint64(HASH_SEED) + five + np.uint64(8 * len(words)))
        for word in words:
            mixed = _rotate(mixed ^ _rotate(word * two, 31) * one, 27) * one + four
        mixed = (mixed ^ mixed >> np.uint64(33)) * two
        mixed = (mixed ^ mixed >> np.uint64(29)) * three
    return ((mixed ^ mixed >> np.uint64(32)) % np.uint64(spines)).astype(np.int64)


def _rotate(words: Uints, bits: int) -> Uints:
    return words << np.uint64(bits) | words >> np.uint64(64 - bits)


def play(scene: Scene) -> tuple[JobHistory, ...]:
    """Return the histories of a scene's jobs in the flow-level model."""
    topology, types = _set_up()
    named = {f"j{place}": job for place, job in enumerate(scene.jobs)}
    requests = [Request(name, job.type, 1, job.gpus, job.iterations, job.arrives_s) for name, job in named.items()]
    shapes = [shape_of(types[job.type], job.gpus, BYTES_PER_MS) for job in scene.jobs]
    placed = {name: np.array(job.servers) for name, job in named.items() if job.servers}
    rule = SpineRule(xxh64_spines) if scene.paths == "ecmp" else RULES[scene.paths]
    return simulate_queue(requests, shapes, QueueCluster(topology, rule, None, 0, placed)).histories


@cache
def _set_up() -> tuple[Topology, dict[str, JobType]]:
    """Return the topology and the types of jobs of monkeytree-load."""
    spec = next(cell.spec for cell in load_experiment("monkeytree-load").cells if cell.variant == "ecmp")
    assert spec.cluster
    assert isinstance(spec.cluster.trace, JobMix)
    return spec.topology, spec.cluster.trace.types


def compare(scene: Scene) -> dict[str, Any]:
    """Return the slowdowns of a scene's jobs in both, and how far they differ."""
    histories = play(scene)
    starts, stops, alone = np.array([(job.started_s, job.ended_s, job.dedicated_s) for job in histories], float).T
    ours = stops - starts
    begins, ends = np.array([job.among_all_s for job in scene.jobs]).T
    apart = np.abs(ours / (ends - begins) - 1)
    return {
        "load": scene.load,
        "paths": scene.paths,
        "jobs": len(scene.jobs),
        "peer_mean": float(((ends - begins) / alone).mean()),
        "mean": float((ours / alone).mean()),
        "median_apart": float(np.median(apart)),
        "most_apart": float(apart.max()),
        "start_apart_s": float(np.abs(starts - begins).max()),
    }


def run_peer(program: str, folder: str, scene: Scene) -> dict[str, Any]:
    """Return when golden_spine starts and ends each job of a scene, s, and its CPU seconds and peak memory."""
    placed = [job for job in scene.jobs if job.servers]
    nics = {
        server * PER_SERVER + gpu: place
        for place, job in enumerate(placed)
        for server in job.servers
        for gpu in range(PER_SERVER)
    }
    state = [str(len(placed))]
    state += [f"{place}: {job.gpus} {job.peer_type} {job.iterations}" for place, job in enumerate(placed)]
    state += ["", "Placement", *(f"{nic}: {nics[nic]}" for nic in sorted(nics)), ""]
    arriving = scene.jobs[len(placed) :]
    trace = [f"{len(arriving)}"]
    trace += [f"{round(1e6 * job.arrives_s)} {job.peer_type} {job.gpus} {job.iterations}" for job in arriving]
    with tempfile.TemporaryDirectory() as scratch:
        files = [Path(scratch, name) for name in ("trace", "state", "log")]
        for file, lines in zip(files, (trace, state), strict=False):
            file.write_text("\n".join([*lines, ""]), encoding="ascii")
        argv = [str(Path(program).resolve()), str(files[0]), scene.paths, *FABRIC, str(files[1])]
        before_s = children_cpu_s()
        with files[2].open("w", encoding="utf-8") as log, subprocess.Popen(argv, cwd=folder, stdout=log) as process:
            mb = 0.0
            while process.poll() is None:
                mb = max(mb, _memory_mb(process.pid))
                time.sleep(0.05)
        spent_s = children_cpu_s() - before_s
        text = files[2].read_text(encoding="utf-8")
    ran = {int(job[1]): (int(job[2]) / 1e6, int(job[3]) / 1e6) for job in COMPLETED.finditer(text)}
    if process.returncode or len(ran) != len(scene.jobs):
        status = process.returncode
        msg = f"{program}: {len(ran)} of {len(scene.jobs)} jobs ended, with exit status {status}, expected all"
        raise RuntimeError(msg)
    return {
        "ran_s": [ran[place] for place in range(len(ran))],
        "cpu_s": spent_s,
        "mb": mb,
    }


def _memory_mb(process: int) -> float:
    """Return the peak memory of a process until now, without that of the program that started it; 0 once it ended."""
    lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def measure_ours(scene: Scene) -> dict[str, Any]:
    """Return the CPU seconds and peak memory of the second simulation in this process, after all modules are loaded."""
    play(scene._replace(jobs=scene.jobs[:1]))
    begin = time.process_time()
    play(scene)
    taken = time.process_time() - begin
    return {"cpu_s": taken, "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def measure(program: str, folder: str, scene: Scene, rounds: int) -> dict[str, Any]:
    """Return the CPU seconds and memory of both in each round, and how far the peer is from its stored times."""
    contenders = {
        "peer": partial(run_peer, program, folder, scene),
        "ours": partial(measure_in_process, measure_ours, scene),
    }
    found = take_turns(contenders, rounds)
    ran = [each.pop("ran_s") for each in found["peer"]][-1]
    return {"load": scene.load, "paths": scene.paths, "ran_s": ran, **found}


def lines_of(result: dict[str, list[dict[str, Any]]]) -> Iterator[str]:
    for name, rows in result.items():
        yield f"{name}:"
        for row in rows:
            if "peer" in row:
                pairs = [f"{each['cpu_s']:.2f} s, {each['mb']:.0f} MB" for who in ("peer", "ours") for each in row[who]]
                yield f"  {row['paths']:8} {row['load']:.1f}  " + "; ".join(pairs)
            else:
                yield (
                    f"  {row['paths']:8} {row['load']:.1f}  {row['jobs']} jobs, mean {row['peer_mean']:.4f} there and "
                    f"{row['mean']:.4f} here; apart: median {row['median_apart']:.1e}, most {row['most_apart']:.1e}"
                )


def longer(scenes: Sequence[Scene], times: int) -> list[Scene]:
    """Return scenes whose jobs have `times` as many iterations."""
    return [
        scene._replace(jobs=tuple(job._replace(iterations=times * job.iterations) for job in scene.jobs))
        for scene in scenes
    ]


def main() -> None:
    short = {"rounds": 1}
    options = read_options(__doc__, short, peer="", jobs=".", times=1, rounds=2)
    scenes = list(read_scenes())[: 1 if options.short else None]
    result: dict[str, list[dict[str, Any]]] = {
        "all jobs": [compare(scene) for scene in scenes],
        "without pipelines": [compare(without_pipelines(scene)) for scene in scenes],
    }
    if options.peer:
        both = longer(scenes, options.times)
        result["time and memory, peer and ours by round"] = [
            measure(options.peer, options.jobs, scene, options.rounds) for scene in both
        ]
    print_result(options, result, lines_of(result))


if __name__ == "__main__":
    main()
