# SPDX-License-Identifier: Apache-2.0
"""Linux TCP settings for hosts whose bytes and times are scaled."""

RTO_MIN_MS = 200
"""Linux's minimum retransmission timeout, which the lab multiplies by its dilation."""
WMEM_BYTES, WMEM_LEAST_BYTES = 4 << 20, 16 << 10
"""Linux's maximum send buffer of a flow, and the minimum of its scaled size, because packets are not scaled."""


def wmem(bytes_scale: float) -> str:
    """Return the value of `net.ipv4.tcp_wmem` for hosts whose bytes are divided by `bytes_scale`."""
    return f"4096 {WMEM_LEAST_BYTES} {max(round(WMEM_BYTES / bytes_scale), WMEM_LEAST_BYTES)}"
