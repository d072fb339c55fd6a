# SPDX-License-Identifier: Apache-2.0
"""Random states of clusters."""

from hypothesis import strategies as st

from roundabout.models.cluster.placement import host_tree_of
from roundabout.models.cluster.state import Job, Request, State
from tests.schedulers.clusters import MODELS, cluster

CLUSTERS = (cluster(4, 3), cluster(2, 2, gpus=4), cluster(3, 2, gpus=2))


@st.composite
def states(draw):
    """A cluster some time after it began: some jobs run, some wait, some leases have ended."""
    topology, now_s = draw(st.sampled_from(CLUSTERS)), 1000.0
    ground = host_tree_of(topology)
    free = ground.free(())
    jobs = []
    for place in range(draw(st.integers(0, 9))):
        model, workers = draw(st.sampled_from(sorted(MODELS))), draw(st.integers(1, min(12, ground.gpus)))
        request = Request(f"j{place}", model, 8, workers, draw(st.integers(200, 1000)), draw(st.floats(0, now_s)))
        has = draw(st.integers(0, min(workers, int(free.sum()))))
        placement = ground.scatter(free, has, draw(st.randoms(use_true_random=False))) if has else ()
        lease_s = draw(st.sampled_from((None, now_s - 5, now_s, now_s + 300))) if has else None
        completed = draw(st.floats(0, request.iterations - 1))
        jobs.append(Job(request, completed, placement, 0.0 if has else None, lease_s, moves=draw(st.integers(0, 5))))
    return State(now_s, topology, tuple(jobs))
