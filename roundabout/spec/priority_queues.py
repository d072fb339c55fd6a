# SPDX-License-Identifier: Apache-2.0
"""Model of a port's priority queues and their weights."""

from typing import Annotated

from pydantic import Field

from roundabout.spec.base import Strict, Tuple

# A job's priority is the DSCP of its packets, a field of 6 bits. 0 is left to packets without a priority.
Priority = Annotated[int, Field(ge=1, le=63)]
# Limit of queues for jobs. Ports have eight classes, one of which is reserved for CNPs.
MAX_QUEUES = 7
Queues = Annotated[int, Field(ge=2, le=MAX_QUEUES)]


class WeightedQueues(Strict):
    """Deficit weighted round robin (DWRR) among the lowest priority queues of a switch's port.

    A round gives each queue its weight times the quantum (Shreedhar and Varghese, 1995). Higher queues, and CNPs, come
    first, strictly.
    """

    weights: Annotated[Tuple[Annotated[int, Field(ge=1, le=10_000)]], Field(min_length=2, max_length=MAX_QUEUES)] = (
        Field(description="of the lowest queues, from the one that strict priorities would serve last upwards")
    )
    quantum_bytes: Annotated[int, Field(ge=64, le=10**6)] | None = Field(
        default=None, description="bytes of frames that a weight of 1 sends in a round; default: a full frame"
    )
