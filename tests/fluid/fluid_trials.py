# SPDX-License-Identifier: Apache-2.0
"""Trials of one or more jobs on small networks."""

from roundabout.spec import Profile, ResolvedJob, Topology, Transport, TrialSpec
from roundabout.spec.cross_traffic import CrossTraffic


def trial(jobs, links, hosts, switches):
    """A trial of vgg19-fig1 jobs; `jobs` maps names to workers."""
    profile = Profile.model_validate(
        {
            "name": "vgg19-fig1",
            "model": "VGG19",
            "phases": [
                {"name": "forward", "compute_ms": 150.0, "guess": "half"},
                {"name": "allreduce", "bytes": 574_680_000, "alone_ms": 143.0, "guess": "half"},
            ],
        }
    )
    topology = Topology.model_validate(
        {
            "name": "tree",
            "about": "a tree",
            "line_rate_gbps": 50,
            "payload_rate_gbps": 43,
            "queue": "lossless",
            "hosts": hosts,
            "switches": switches,
            "links": [{"name": f"{a}-{b}", "ends": [a, b]} for a, b in links],
        }
    )
    resolved = {
        name: ResolvedJob(profile=profile, workers=tuple(workers), transport=Transport(name="dcqcn"))
        for name, workers in jobs.items()
    }
    return TrialSpec(topology=topology, jobs=resolved, iterations=10)


HOSTS = ["s0", "s1", "s2", "s3"]
DUMBBELL = [("s0", "tor0"), ("s1", "tor0"), ("s2", "tor1"), ("s3", "tor1"), ("tor0", "tor1")]
STAR = [("s0", "tor"), ("s1", "tor"), ("s2", "tor"), ("s3", "tor")]


def beside(spec, **loads):
    """The trial with cross traffic from a host to others: `beside(spec, s2=(["s0"], 10))`."""
    traffic = {
        f"from-{sender}": CrossTraffic.model_validate(
            {"kind": "consistent", "from": sender, "to": receivers, "load_gbps": load}
        )
        for sender, (receivers, load) in loads.items()
    }
    return spec.model_copy(update={"cross_traffic": traffic})


def ring():
    return trial({"j1": ["s0", "s1", "s3"]}, STAR, HOSTS, ["tor"])
