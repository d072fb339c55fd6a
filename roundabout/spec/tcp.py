# SPDX-License-Identifier: Apache-2.0
"""Model of the hosts' TCP settings."""

from pydantic import Field

from roundabout.spec.base import Strict


class Tcp(Strict):
    """TCP settings of all hosts, for any congestion control. The testbed chooses omitted settings."""

    ecn: bool | None = Field(
        default=None, description="whether TCP reacts to ECN marks; transports that stand for RDMA always do"
    )
    tail_loss_probes: bool | None = Field(default=None, description="whether senders use tail loss probes (RFC 8985)")
    delayed_acks: bool | None = Field(default=None, description="whether receivers may delay acknowledgments")

    @property
    def sysctls(self) -> dict[str, int]:
        """Return the Linux sysctls, by name, that apply the given settings."""
        requested = {
            "net.ipv4.tcp_ecn": {True: 1, False: 0, None: None}[self.ecn],
            "net.ipv4.tcp_early_retrans": {True: 3, False: 0, None: None}[self.tail_loss_probes],
        }
        return {name: value for name, value in requested.items() if value is not None}

    @property
    def route(self) -> dict[str, int]:
        """Return the attributes of `ip route`, by name, that apply the given settings."""
        return {} if self.delayed_acks is None else {"quickack": int(not self.delayed_acks)}
