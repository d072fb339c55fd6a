# SPDX-License-Identifier: Apache-2.0
"""A fake sampler: it prints made-up counters every 5 ms in the sampler's own format, until its stdin is closed."""

import select
import sys
import time

from fake_host import fault, option, words

CPU = (
    "#cpu,before_ns,after_ns,busy_ticks,idle_ticks,steal_ticks,softirq_ticks,softnet_processed,softnet_dropped,"
    "softnet_squeezed"
)
NETWORK = (
    "#port,before_ns,after_ns,interface,ifindex,up,tx_bytes,tx_packets,rx_bytes,rx_packets,tx_dropped,rx_dropped,"
    "qdisc_backlog_bytes,qdisc_drops,qdisc_bytes,marks,ecn_packets",
    "#sampler,before_ns,after_ns,samples,missed,dropped_lines",
    "#marks,before_ns,after_ns,ifindex,source,marks",
    "#counter,set,field,device,source,counter,unit,width_bits",
    "counter,set0,0,mlx5_0/1,rdma port,port_xmit_data,bytes,64",
    "#set0,before_ns,after_ns,0",
)


def row(*fields):
    print(*fields, sep=",", flush=True)


of_cpu, of_link = "--cpu" in words, "--ifindex" in words
of_network = of_link or "--interfaces" in words
ifindex = option("ifindex") if of_link else 2
if of_cpu:
    print(CPU)
    busy, steal = fault("busy") or 0.3, fault("steal") or 0
    dropped = fault("softnet_dropped") or 0
if of_network:
    print(*NETWORK, sep="\n")
    lost, dies = fault("lost_lines") or 0, fault("sampler_dies")
    # Of a link, which the switches' samplers see: whichever sampler of this folder begins first may read it.
    drops, stalls = (of_link and fault("drops")) or 0, of_link and fault("stalls")
step = 0
while not select.select([sys.stdin], [], [], 0.005)[0]:
    now = time.monotonic_ns()
    if of_cpu:
        ticks = [int(step * 100 * share) for share in (busy, 1 - busy - steal, steal)]
        row("cpu", now, now, *ticks, 0, step, dropped if step else 0, 0)
    if of_network:
        moved, waiting = (0, 40) if stalls else (step, 0)
        sent = [100 * moved, moved, 100 * moved, moved]
        marks = 3 * step if of_link else ""
        row("port", now, now, "eth0", ifindex, 1, *sent, 0, 0, waiting, drops if step else 0, 0, marks, 0)
    if of_link:
        row("marks", now, now, ifindex, "10.0.0.1", 3 * step)
    elif of_network:
        row("set0", now, now, 100 * step if step % 2 else "")
    if of_network:
        row("sampler", now, now, step, 0, lost)
    step += 1
    if of_network and dies and step > 3:
        sys.exit("sampler: the kernel refused to give counters")
