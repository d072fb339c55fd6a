# SPDX-License-Identifier: Apache-2.0
"""An experiment in which the jobs of Chakra's execution traces share a leaf-spine."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from analysis.records.execution_profile import ExecutionProfile, make_execution_profile
from analysis.records.execution_schedule import Rates
from analysis.records.profile_maker import files_in
from analysis.records.readers.chakra import RANK_IN_NAME
from roundabout.core.errors import UsageError
from roundabout.spec import Profile
from roundabout.spec.base import NAME_RULE, Name
from roundabout.spec.fabrics import leaf_spine
from roundabout.spec.reader.yaml_source import dump
from roundabout.spec.topology import Topology

MIN_SERVERS = 16
"""Servers of a fabric with two leaves, so that jobs can meet between them."""
WIDTH = 120


@dataclass(frozen=True)
class TracedExperiment:
    """Jobs made of execution traces, by name, on the hosts of a topology."""

    name: Name
    topology: Topology
    jobs: dict[Name, ExecutionProfile]
    workers: dict[Name, list[str]]

    @property
    def caveats(self) -> tuple[str, ...]:
        """Return a sentence on each thing that a job's traces lack, with the job's name."""
        return tuple(f"{job}: {caveat}" for job, found in self.jobs.items() for caveat in found.caveats)

    @property
    def text(self) -> str:
        """Return the experiment as YAML."""
        about = f"Jobs of execution traces on a leaf-spine: {', '.join(self.jobs)}"
        profiles = {job: _profile_fields(found.profile) for job, found in self.jobs.items()}
        variants = {"alone": {"one_job_at_a_time": True}, "together": {}}
        jobs = {job: {"profile": job, "workers": self.workers[job], "jitter": 0} for job in self.jobs}
        return "".join(
            (
                "# Jobs of Chakra's execution traces. `--quick` plays a hundredth of their bytes and times, once:\n",
                f"# roundabout run {self.name}.yaml --testbed packets --quick\n",
                dump({"schema": 1, "name": self.name, "about": about, "topology": self.name}, WIDTH),
                "routing: {name: ecmp, seed: 1}   # the seed draws which links flows take\n",
                _dump({"profiles": profiles}),
                "# A job's ranks are on all leaves in turn, so that jobs meet. A host may stand for several ranks.\n",
                _dump({"jobs": jobs}),
                "iterations: 5\n",
                "transport: {name: dcqcn, set: hpcc-paper}   # `roundabout judge` lists transports and parameters\n",
                _dump({"factors": {"variant": variants}}) if len(jobs) > 1 else "",
                "lengths:\n  quick: {iterations: 1, resized: {compute: 0.01, bytes: 0.01}}\n",
            )
        )


def make_traced_experiment(
    name: Name, source: Path, tflops: float | None, servers: int | None, oversubscription: int
) -> TracedExperiment:
    """Return an experiment of all jobs with traces in the folder `source`, or of the job of the trace `source`.

    Files `<prefix>.<rank>.et` of one prefix are a job of that name. Without `servers` the fabric has as many as ranks,
    16 at least, and a whole number of leaves. Raises UsageError and RecordError.
    """
    jobs = _traces_by_job(source)
    ranks = sum(map(len, jobs.values()))
    if servers is not None and servers < ranks:
        raise UsageError(f"--servers: found {servers}, expected {ranks} at least, one for each rank of the traces")
    fabric = leaf_spine(servers or max(-(-ranks // 8) * 8, MIN_SERVERS), oversubscription)
    topology = fabric.topology(name)
    rates = Rates(topology.payload_rate_gbps, tflops)
    group_files = [path for path in files_in(source) if _is_group_file(path)] if source.is_dir() else []
    profiles = {job: make_execution_profile([*paths, *group_files], job, rates) for job, paths in jobs.items()}
    dealt = (host for host in chain(*zip_longest(*fabric.leaves.values())) if host)
    workers = {job: [next(dealt) for _ in paths] for job, paths in jobs.items()}
    return TracedExperiment(name, topology, profiles, workers)


def _traces_by_job(source: Path) -> dict[Name, Sequence[Path]]:
    """Return the traces of each job, by the prefix of their names. Raises UsageError if there are none."""
    found: dict[str, list[Path]] = defaultdict(list)
    for path in files_in(source if source.is_dir() else source.parent):
        prefix = _prefix(path)
        if prefix and (source.is_dir() or prefix == _prefix(source)):
            found[prefix].append(path)
    if not found:
        raise UsageError(f"--from: found no traces in {source}, expected <prefix>.0.et, <prefix>.1.et, ...")
    for prefix, paths in found.items():
        try:
            TypeAdapter(Name).validate_python(prefix)
        except ValidationError:
            raise UsageError(f"{paths[0]}: found the prefix '{prefix}', expected a job's name of {NAME_RULE}") from None
    return dict(found)


def _prefix(path: Path) -> str:
    """Return a trace's name before its rank; empty for a file whose name has no rank."""
    ranked = RANK_IN_NAME.search(path.name)
    return path.name[: ranked.start()] if ranked else ""


def _is_group_file(path: Path) -> bool:
    return path.suffix == ".json" and not _prefix(path)


def _profile_fields(profile: Profile) -> dict[str, object]:
    """Return a profile's fields as below `profiles` of an experiment, where its key is its name."""
    return profile.model_dump(mode="json", exclude_defaults=True, exclude={"name"})


def _dump(fields: dict[str, object]) -> str:
    return dump(fields, WIDTH, flow_leaves=True)
