# SPDX-License-Identifier: Apache-2.0
"""DCQCN packet by packet beside the fixed point of its fluid model (CoNEXT'16, equation 11)."""

import numpy as np
import pytest

from roundabout.models.packets import Fabric, play_trial
from tests.fluid.dcqcn_theory import MBPS, conext_16, reaction
from tests.trials import build_trial

pytestmark = pytest.mark.unit

GBPS = 36.0
PACKET_BYTES = 1024.0
SENDING_MS = 500


@pytest.mark.parametrize(("name", "R_AI_mbps"), [("sigcomm15", 40), ("conext16", 10)])
def test_two_flows_are_marked_as_at_the_fixed_point(
    name: str,
    R_AI_mbps: float,  # noqa: N803
) -> None:
    size = int(GBPS / 2 * 1e6 / 8 * SENDING_MS)
    send = {"name": "send", "bytes": size, "alone_ms": SENDING_MS / 2 * 1.05, "pattern": "one-to-all", "guess": "any"}
    spec = build_trial(
        line_rate_gbps=40,
        payload_rate_gbps=GBPS,
        profiles={"p": {"model": "any", "phases": [send]}},
        jobs={f"j{k}": {"profile": "p", "workers": [f"s{k}", f"s{k + 2}"]} for k in range(2)},
        transport={"name": "dcqcn", "set": name},
        iterations=1,
    )
    played = play_trial(spec, 1, Fabric(), 1.0)
    port, counted = played.ports.numbers["tor0", "tor1"], played.samples.ports
    settled = slice(SENDING_MS // 5, SENDING_MS - 50)
    marked, sent = (np.ptp(counted[column][settled, port]) for column in ("marks", "tx_packets"))
    carried_gbps = sent * PACKET_BYTES * 8 / (settled.stop - settled.start - 1) / 1e6
    assert carried_gbps == pytest.approx(GBPS, rel=0.01)
    R_AI = R_AI_mbps * MBPS  # noqa: N806
    expected = conext_16(reaction(R_AI=R_AI), 2, GBPS * 1e3 * MBPS, PACKET_BYTES)
    # The fluid model has no gap after a CNP and no oscillation: flows are marked more, by a fifth to a third.
    assert marked / sent == pytest.approx(expected, rel=0.4)
