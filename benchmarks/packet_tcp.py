# SPDX-License-Identifier: Apache-2.0
"""TCP in the packet-level model: goodput, mean queue, losses and fairness at one port, and packet-hops a second.

    python benchmarks/packet_tcp.py [--ms TIME] [--short] [--json]

Each flow comes from a host of its own at 100 Gbit/s, and all go to one port of 10 or 50 Gbit/s, with 1 ms of queue for
Reno and CUBIC and the step of `queue: step` for DCTCP. Links have the model's delay, hosts its TCP. Figures are of the
second half of the time; rates in packet-hops are by CPU seconds of one processor, over all of it.
"""

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.shared.command import print_result, read_options
from benchmarks.shared.tcp import ALGORITHMS, MTU, connection, port, send_forever
from roundabout.models.packets import Engine
from roundabout.models.packets.structures import PS_PER_MS, PS_PER_US, make_structure
from roundabout.spec.delays import Delays
from roundabout.spec.frames import AROUND_BYTES, payload_share
from roundabout.spec.pfc import CONTROL_BYTES
from roundabout.spec.transports.queues import drop_tail_bytes, step_bytes

HOST_GBPS = 100.0
DELAYS = Delays()


def measure(algorithm: str, gbps: float, flows: int, ms: float) -> dict[str, Any]:
    queue: dict[str, float] = {"queue_bytes": drop_tail_bytes(gbps * payload_share(MTU))}
    if algorithm == "dctcp":
        step = step_bytes(gbps, MTU)
        queue = {"kmin_bytes": step, "kmax_bytes": step, "pmax": 1.0}
    # Directions in pairs: each sender to the switch and back, and last the switch to the receiver and back.
    delay = {"delay_ps": round((DELAYS.link_us + DELAYS.switch_us) * PS_PER_US)}
    ports = [port(HOST_GBPS, end, **delay) for host in range(flows) for end in (host, -1)]
    ports += [port(gbps, **delay, **queue), port(gbps, flows, **delay)]
    nic = make_structure("nic_plan", control_bytes=CONTROL_BYTES, around_bytes=AROUND_BYTES, seed=1)
    engine = Engine(nic, ports, flows + 1, PS_PER_MS // 20)
    out = 2 * flows
    pairs = [
        engine.add_connection([2 * host, out], [out + 1, 2 * host + 1], (host, flows), connection(algorithm))
        for host in range(flows)
    ]
    for place, pair in enumerate(pairs):
        send_forever(engine, pair, place * 17 * PS_PER_US)
    begin = time.process_time()
    acked = []
    for end_ms in (ms / 2, ms):
        engine.run(round(end_ms * PS_PER_MS), while_jobs=False)
        acked.append([engine.pair_result(pair).acked for pair in pairs])
    spent = time.process_time() - begin
    rates = np.diff(acked, axis=0)[0] * 8 / (ms / 2 * 1e6)
    counts = engine.samples().ports
    late = slice(len(counts["drops"]) // 2, None)
    return {
        "algorithm": algorithm,
        "gbps": gbps,
        "flows": flows,
        "goodput_gbps": float(rates.sum()),
        "of_payload_rate": float(rates.sum() / (gbps * payload_share(MTU))),
        "queue_kb": float(counts["backlog_bytes"][late, out].mean() / 1e3),
        "drops": int(np.ptp(counts["drops"][late, out])),
        "marks": int(np.ptp(counts["marks"][late, out])),
        "fairness": float(rates.sum() ** 2 / (flows * (rates**2).sum())),
        "per_s": engine.packet_hops / spent,
    }


def main() -> None:
    options = read_options(__doc__, {"ms": 20.0}, ms=600.0)
    cases = [(algorithm, gbps, flows) for algorithm in ALGORITHMS for gbps in (10.0, 50.0) for flows in (1, 8)]
    found = [measure(*case, options.ms) for case in cases]
    lines = ["         Gbit/s flows  goodput  of rate  queue, kB   drops    marks  fairness  M hops/s"]
    for each in found:
        port_columns = f"{each['algorithm']:8}{each['gbps']:7.0f}{each['flows']:6}{each['goodput_gbps']:9.2f}"
        queue_columns = f"{each['of_payload_rate']:9.3f}{each['queue_kb']:11.0f}{each['drops']:8}{each['marks']:9}"
        lines.append(f"{port_columns}{queue_columns}{each['fairness']:10.3f}{each['per_s'] / 1e6:10.1f}")
    rates = [each["per_s"] / 1e6 for each in found]
    lines.append(f"packet-hops a second, mean, millions: {sum(rates) / len(rates):.1f}")
    print_result(options, found, lines)


if __name__ == "__main__":
    main()
