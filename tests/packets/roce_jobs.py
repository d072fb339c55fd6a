# SPDX-License-Identifier: Apache-2.0
"""A star network and transports of RoCE jobs."""

from roundabout.spec import Transport
from roundabout.spec.transports import registry
from roundabout.spec.transports.sets import find_published

STAR = [("ha", "s"), ("hb", "s"), ("hc", "s")]


def dcqcn(published: str | None = None, **given: float) -> Transport:
    """Return DCQCN with a published set and the `given` parameters."""
    declared = registry.find_declaration("dcqcn")
    assert declared
    chosen = find_published(declared, published) if published else None
    return Transport.model_validate({"name": "dcqcn", "stands_for": "RDMA", "set": chosen, **given})
