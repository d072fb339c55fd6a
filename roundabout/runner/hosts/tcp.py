# SPDX-License-Identifier: Apache-2.0
"""Linux TCP settings in bytes and times, for hosts whose bytes and times are scaled."""

RTO_MIN_MS = 200
"""Linux's own least timeout, which is stretched like all times."""
WMEM_BYTES, WMEM_LEAST_BYTES = 4 << 20, 16 << 10
"""Under way of a flow, at most, as Linux has it; divided like all bytes, but packets are not."""


def wmem(bytes_scale: float) -> str:
    """Return `net.ipv4.tcp_wmem` for hosts whose bytes are divided by `bytes_scale`."""
    return f"4096 {WMEM_LEAST_BYTES} {max(round(WMEM_BYTES / bytes_scale), WMEM_LEAST_BYTES)}"
