# SPDX-License-Identifier: Apache-2.0
"""Source ports that are chosen for flows, and with them the paths that ECMP's hash gives these flows."""

from typing import Annotated

from pydantic import Field

from roundabout.spec.base import Strict

Rank = Annotated[int, Field(ge=0)]


class FlowPort(Strict):
    """The source port of a job's flow from one rank to another. `number` counts the flows between the two ranks."""

    sender: Rank
    receiver: Rank
    number: Rank
    port: Annotated[int, Field(ge=1, le=65_535)]
