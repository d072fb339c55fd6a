# SPDX-License-Identifier: Apache-2.0
"""Model of a network's delays: links, switches, NICs, and the feedback from a mark to the cut of a rate."""

from typing import Annotated, NamedTuple

from pydantic import Field

from roundabout.spec.base import NotNegative, Strict

Delay = Annotated[NotNegative, Field(le=1e6)]


class Delays(Strict):
    """Parts of a path's delay besides sending and waiting in queues, in us of the papers' time.

    The defaults are guesses: no paper of ours prints them. With them a mark cuts a rate after 8.6 to 10.6 us on a
    dumbbell. The effect of that time on the share of Figure 1c (HotNets'22) is 1.8 at 1 us to 2.0 at 16 us.
    """

    link_us: Delay = Field(default=0.1, description="propagation of a link; guess: 20 m of cable at 5 ns/m")
    switch_us: Delay = Field(
        default=0.5, description="forwarding of a switch, from arrival to the queue; guess: data sheets have 0.5 to 0.8"
    )
    nic_us: Delay = Field(default=0.5, description="a NIC's time to take a packet; guess: as long as a switch")
    mark_to_cnp_us: Delay = Field(
        default=2.5, description="a NIC's time from a marked packet to its CNP; guess: half of 5 us in both NICs"
    )
    cnp_to_cut_us: Delay = Field(
        default=2.5, description="a NIC's time from a CNP to the cut of a rate; guess: half of 5 us in both NICs"
    )
    cnp_jitter_us: Delay = Field(
        default=2.0, description="width of the even spread that is added for each CNP; a guess"
    )


class FeedbackDelay(NamedTuple):
    """The time from a packet's mark to the cut of its flow's rate, in us of the papers' time, without queues."""

    least_us: float
    most_us: float

    @property
    def mean_us(self) -> float:
        """Return the mean, in us."""
        return (self.least_us + self.most_us) / 2

    def __str__(self) -> str:
        least, most = f"{self.least_us:.1f}", f"{self.most_us:.1f}"
        return f"{least} us" if least == most else f"{least} to {most} us"
