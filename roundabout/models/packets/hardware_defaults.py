# SPDX-License-Identifier: Apache-2.0
"""Properties of NICs, switches and cables that no topology states. Guesses are marked, each with its effect."""

from dataclasses import dataclass

from roundabout.spec.frames import AROUND_BYTES, FRAME_HEADER_BYTES, ROCE_HEADER_BYTES
from roundabout.spec.transports import Ecn

PATH_MTUS = (256, 512, 1024, 2048, 4096)
"""Payload bytes of a full RoCE packet (InfiniBand Architecture Specification): what a path MTU may be."""

ECN = Ecn(Kmin_bytes=80_000, Kmax_bytes=160_000, Pmax=1.0)
"""1000 and 2000 cells of 80 bytes, all marked above: the WRED of the interleaving thesis' switch."""

RED = Ecn(Kmin_bytes=80_000, Kmax_bytes=240_000, Pmax=0.1)
"""The same lower threshold, and what Floyd recommends with it (notes of 1997): three times that, and a max_p of 0.1."""


@dataclass(frozen=True)
class TcpHosts:
    """Linux' TCP on all hosts, where an experiment says nothing else. Sizes are in bytes.

    - `tso_bytes`, `write_bytes`: Linux' largest burst, and as much written at once, which is a guess.
    - `window_bytes`: under way of a flow, at most. `marked_window_bytes`: the same between thresholds, as in the lab.
    - `first_window_bytes`, `grown_window_bytes`: what a receiver lets come, at first and at last. While it grows, each
      segment is acknowledged. Linux' 64 KiB, and 63.3 % of the lab's tcp_rmem of 16 MiB: the share that a connection
      with a tcp_rmem of 1 MiB grew to (663,552 bytes, Linux 6.18). Without it, the first 5 MB get half as many ACKs.
    - `rto_min_ms`: Linux' own. `drop_tail_rto_min_ms`: where packets are lost, as in the lab (docs/results/mltcp.md).
    - `jitter_us`: width of the spread of a host's time to send what an ACK allows. A guess: without any, flows keep in
      step, and the one that comes first takes all that a full queue has room for (Floyd and Jacobson, 1992).
    """

    tso_bytes: int = 65_536
    write_bytes: int = 65_536
    window_bytes: int = 32 << 20
    marked_window_bytes: int = 4 << 20
    first_window_bytes: int = 65_535
    grown_window_bytes: int = 10_616_832
    initial_window: int = 10
    rto_min_ms: float = 200.0
    drop_tail_rto_min_ms: float = 10.0
    delayed_ack_ms: float = 40.0
    ack_segments: int = 2
    jitter_us: float = 1.0
    restarts_after_idle: bool = True
    is_paced: bool = False
    uses_hystart: bool = True


@dataclass(frozen=True)
class Fabric:
    """NICs, switches and cables. Times are in us, sizes in bytes as interfaces count them.

    - `ack_bytes`: a message is acknowledged that often, as NCCL's chunks are (512 KiB).
    - `burst_packets`, `pace_jitter`: the rate limiter's packets at once, and the width of the spread of the gap after
      them, as a share. A guess: without any spread, equal flows keep in step for good. A flow at R_max has none.
    - `timeout_us`: 4.096 us * 2^14, the local ACK timeout that perftest sets.
    - `ecn`, `red`: where experiments and sets give no thresholds.
    - `xoff_bytes`, `xon_bytes`: of one link and priority. A guess: what a dynamic threshold of 1/8 leaves of 16 MB.
    - `tcp`: hosts whose transport is TCP.
    """

    ack_bytes: int = 512 * 1024
    burst_packets: int = 1
    pace_jitter: float = 0.1
    timeout_us: float = 67_109.0
    ecn: Ecn = ECN
    red: Ecn = RED
    marks_on_arrival: bool = False
    xoff_bytes: int = 2_000_000
    xon_bytes: int = 1_900_000
    tcp: TcpHosts = TcpHosts()


def payload_bytes(mtu_bytes: int) -> int:
    """Return the payload of a full packet on links of an MTU."""
    return max(size for size in PATH_MTUS if size + ROCE_HEADER_BYTES <= mtu_bytes)


def frame_bytes(payload: int) -> int:
    """Return the bytes of a data packet's frame, as interfaces count it."""
    return FRAME_HEADER_BYTES + ROCE_HEADER_BYTES + payload


def roce_payload_share(mtu_bytes: int) -> float:
    """Return the largest share of a link's rate, 0 to 1, that the payload of RoCE packets can have at this MTU."""
    payload = payload_bytes(mtu_bytes)
    return payload / (frame_bytes(payload) + AROUND_BYTES)
