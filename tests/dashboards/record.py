# SPDX-License-Identifier: Apache-2.0
"""What a sampler says of a host that has everything: constructed, as collectors/sampler/README.md describes it."""

import sys
from pathlib import Path
from typing import Any

from roundabout.runner.exporter_targets import ExporterTarget, exporter_target

ROOT = Path(__file__).parents[2]
EXPORTER = ROOT / "collectors/exporter/exporter.py"
ENDLESS = "cat > /dev/null"  # a sampler ends when its stdin closes

LINES = """\
#port,before_ns,after_ns,interface,ifindex,up,tx_bytes,tx_packets,rx_bytes,rx_packets,tx_dropped,rx_dropped,\
qdisc_backlog_bytes,qdisc_drops,qdisc_bytes,marks,ecn_packets
#tcp,before_ns,after_ns,in_segs,out_segs,retrans_segs,loss_probes,timeouts,ce_received
#counter,set,field,device,source,counter,unit,width_bits
#sampler,before_ns,after_ns,samples,missed,dropped_lines
#marks,before_ns,after_ns,ifindex,source,marks
#cpu,before_ns,after_ns,busy_ticks,idle_ticks,steal_ticks,softirq_ticks,softnet_processed,softnet_dropped,softnet_squeezed
counter,set0,0,dcqcn,transport,cnps,events,64
counter,set0,1,dcqcn,transport,rate,bytes/s,64
counter,set0,2,dcqcn,transport,alpha_q24,2^-24,32
counter,set0,3,dcqcn,transport,active_us,us,64
counter,set0,4,dctcp,transport,segments_marked,segments,64
counter,set0,5,dctcp,transport,cwnd,segments,32
#set0,before_ns,after_ns,0,1,2,3,4,5
counter,set1,0,mlx5_0/1,rdma hw,np_cnp_sent,packets,64
counter,set1,1,mlx5_0/1,rdma hw,rp_cnp_handled,packets,64
counter,set1,2,mlx5_0/1,rdma hw,np_ecn_marked_roce_packets,packets,64
counter,set1,3,mlx5_0/1,rdma hw,out_of_sequence,packets,32
counter,set1,4,mlx5_0/1,rdma hw,lifespan,ms,64
#set1,before_ns,after_ns,0,1,2,3,4
counter,set2,0,mlx5_0/1,rdma port,port_xmit_data,bytes,64
counter,set2,1,mlx5_0/1,rdma port,VL15_dropped,packets,16
#set2,before_ns,after_ns,0,1
counter,set3,0,eth0,ethtool,rx_prio3_bytes,bytes,64
counter,set3,1,eth0,ethtool,tx_prio3_pause,packets,64
counter,set3,2,eth0,ethtool,rx_prio3_pause_duration,us,64
counter,set3,3,eth0,ethtool,rx_bytes_phy,bytes,64
counter,set3,4,eth0,ethtool,outbound_pci_stalled_rd,percent,64
#set3,before_ns,after_ns,0,1,2,3,4
port,1,2,eth0,7,1,1000,10,2000,20,0,0,300,4,990,5,9
port,1,2,eth1,8,0,,,,,,,,,,,
marks,1,2,7,10.77.0.1,5
set0,1,2,11,12,8388608,13000000,14,15
set1,1,2,21,22,23,24,
set2,1,2,31,32
set3,1,2,41,42,43000000,44,45
tcp,1,2,51,52,53,54,55,56
cpu,1,2,6100,6200,6300,6400,65,66,67
sampler,1,2,1,0,0
"""


def fake_host(folder: Path, node: str, *, lines: str = LINES, site: str = "fake", **facts: Any) -> ExporterTarget:
    """A host whose sampler says these lines, and nothing more."""
    said = folder / f"{node}.csv"
    said.write_text(lines)
    sampler = ["sh", "-c", f'cat "$0"; {ENDLESS}', str(said)]
    return exporter_target(site, node, sampler, **facts)


def importable() -> None:
    """The exporter's folder lies beside no package: on hosts its files lie alone."""
    if str(EXPORTER.parent) not in sys.path:
        sys.path.append(str(EXPORTER.parent))
