# SPDX-License-Identifier: Apache-2.0
"""RoCE NICs of the packet-level engine: reaction points, notification points and retransmission, worked out by hand."""

import pytest

from roundabout.models.packets.transports import reaction_plan, transport_values
from roundabout.spec import Transport
from roundabout.spec.transports import registry
from roundabout.spec.transports.sets import find_published

pytestmark = pytest.mark.unit


def dcqcn(published: str | None = None, **given: float) -> Transport:
    """Return DCQCN with a published set and the `given` parameters."""
    declared = registry.find_declaration("dcqcn")
    assert declared
    chosen = find_published(declared, published) if published else None
    return Transport.model_validate({"name": "dcqcn", "stands_for": "RDMA", "set": chosen, **given})


@pytest.mark.parametrize(
    ("transport", "clamps"),
    [(dcqcn(), 0), (dcqcn("nvidia"), 0), (dcqcn("sigcomm15"), 1), (dcqcn("nvidia", clamp_target=1), 1)],
)
def test_reaction_points_get_the_rule_of_their_set(transport: Transport, clamps: int) -> None:
    assert reaction_plan(transport_values(transport, 43.0)).clamp_target == clamps
