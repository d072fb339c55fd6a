# SPDX-License-Identifier: Apache-2.0
"""Reasons why rows of the scoreboard fail: a sentence each, with the measurement that shows it, by the row's id."""

from collections.abc import Mapping

CAUSES: Mapping[str, str] = {
    "A Fig 1b, 1c, 1d": (
        "At rates of 1:100 packets are few, and a burst holds five times the queue at which marks begin: with time "
        "stretched 17.4 times, so that every packet is there, the share is 2.10 (1.88 to 2.32) for 2.0 "
        "(docs/results/calibration.md)."
    ),
    "A Fig 2": (
        "The jobs of Figure 2 contradict those of Figure 1: with the printed 100 ms of computing, full interleaving "
        "gives 1.47 times and not 1.23 (docs/results/figure-2.md)."
    ),
}
