# SPDX-License-Identifier: Apache-2.0
"""Jobs with given demands, and a scheduler with given offers."""

from roundabout.models.cluster.state import JobKnowledge
from roundabout.spec import Profile
from roundabout.spec.profile import Phase
from tests.schedulers.clusters import cluster, with_links_of

TREE = with_links_of(cluster(4, 3), 43.0)
SENDS_MS = {
    "half": (100.0, 100.0),
    "full": (20.0, 180.0),
    "odd": (37.3, 20.0),
    "wide": (501.7, 499.0),
    "other": (33, 90.1),
    "few": (550.0, 250.0),
    "many": (70.0, 130.0),
    "most": (40.0, 160.0),
    "little": (150.0, 50.0),
}
"""Computing, and sending at 43 Gbit/s in a ring of two."""


def profile(model, workers, batch):
    compute_ms, send_ms = SENDS_MS[model]
    send = Phase(name="send", bytes=round(send_ms * 43e6 / 8), alone_ms=send_ms, guess="made up")
    return Profile(
        name=model, model=model, batch=batch, phases=(Phase(name="compute", compute_ms=compute_ms, guess="-"), send)
    )


KNOWN = JobKnowledge(profile, lambda model: 1000.0)


class Offers:
    """A scheduler that offers what it is given."""

    dedicated = False

    def __init__(self, *offered):
        self.offered = [{job: tuple(hosts.split()) for job, hosts in each.items()} for each in offered]

    def decide(self, state, seed):
        return self.offered
