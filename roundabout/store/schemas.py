# SPDX-License-Identifier: Apache-2.0
"""Schemas of a run's tables: columns, types, units and meanings. A test compares docs/reference/store.md with them.

Bytes, rates and times are in the papers' units. The store converts the lab's figures (unit_conversion.py).
"""

from dataclasses import dataclass

import pyarrow as pa

VERSION = 1

TEXT, INTEGER, REAL, TRUTH = pa.string(), pa.int64(), pa.float64(), pa.bool_()
# Types for tables of packets, which have many rows: as narrow as the headers' fields, with repeated text stored once.
U8, U16, U32, NAME = pa.uint8(), pa.uint16(), pa.uint32(), pa.dictionary(pa.int32(), pa.string())
RUN_NS = "run ns"  # unit of instants on the run's clock; the unit `ns` is for hosts' clocks and durations
OF_ROW = "as unit"  # unit of values whose row states the unit in its column `unit`


@dataclass(frozen=True)
class Column:
    """A column of a table. `unit` is empty for values without a unit. A null value is unknown on the testbed."""

    name: str
    type: pa.DataType
    unit: str
    about: str


COMMON = (
    Column("run", TEXT, "", "the run's id: UTC stamp and four random digits"),
    Column("trial", TEXT, "", "the trial's key"),
    Column("variant", TEXT, "", "level of the factor `variant`; `base` where there is none"),
    Column("levels", TEXT, "", "JSON object: the level of every factor"),
    Column("repetition", INTEGER, "", "counted from 1"),
    Column("attempt", INTEGER, "", "counted from 1; which one counts is in `trials`"),
    Column("host", TEXT, "", "host or switch that the row is about; `controller` for the machine that ran the trial"),
    Column("host_ns", INTEGER, "ns", "when, on that host's monotonic clock"),
    Column("controller_ns", INTEGER, RUN_NS, "when, on the run's clock: UTC, anchored once a run, never stepping"),
    Column(
        "offset_bound_ns", INTEGER, "ns", "how far controller_ns can be off; 0 where host and controller share a clock"
    ),
)

WORKER = (
    Column("job", TEXT, "", "the job"),
    Column("rank", INTEGER, "", "the worker's place in its job, from 0"),
)
PORT = (
    Column("link", TEXT, "", "the topology's name of the link that the port feeds"),
    Column("interface", TEXT, "", "network interface of the port"),
    Column("towards", TEXT, "", "host or switch at the link's other end"),
)
TRAFFIC = Column("traffic", TEXT, "", "the cross traffic")

TABLES: dict[str, tuple[Column, ...]] = {
    # One row an iteration and worker; host_ns and controller_ns are its start.
    "iterations": (
        *WORKER,
        Column("iteration", INTEGER, "", "counted from 0"),
        Column("start_ns", INTEGER, RUN_NS, "start, on the run's clock"),
        Column("compute_end_ns", INTEGER, RUN_NS, "begin of the first communication phase, on the run's clock"),
        Column("comm_end_ns", INTEGER, RUN_NS, "end of the last communication phase, on the run's clock"),
        Column("iteration_ms", REAL, "ms", "start to end of communication"),
        Column("compute_ms", REAL, "ms", "start to begin of communication, a time-shift agent's delay included"),
        Column("communication_ms", REAL, "ms", "begin to end of communication, breaks between phases included"),
        Column("sent_bytes", INTEGER, "bytes", "payload sent in this iteration; null where a program does not say it"),
        Column("received_bytes", INTEGER, "bytes", "payload received in this iteration; null as above"),
        Column("late_ms", REAL, "ms", "worst lateness of the worker's own wake-ups in this iteration"),
        Column("delay_ms", REAL, "ms", "by which the time-shift agent delayed the iteration; null without one"),
        Column("repeats", INTEGER, "", "iteration whose times this one has, as it was skipped; null if it was played"),
        Column("loss", REAL, "", "of the batch that the worker trained on; null where nothing is trained"),
        Column("bus_bandwidth_gbps", REAL, "Gbit/s", "that a program reported, as nccl-tests define it; null without"),
    ),
    # One row a host interface and sample (10 ms); byte and packet counts are cumulative.
    "counters": (
        Column("interface", TEXT, "", "network interface"),
        Column("tx_bytes", INTEGER, "bytes", "sent, headers included, cumulative"),
        Column("rx_bytes", INTEGER, "bytes", "received, headers included, cumulative"),
        Column("tx_packets", INTEGER, "packets", "sent, cumulative"),
        Column("rx_packets", INTEGER, "packets", "received, cumulative"),
        Column("tx_dropped", INTEGER, "packets", "dropped on sending, cumulative"),
        Column("rx_dropped", INTEGER, "packets", "dropped on receiving, cumulative"),
    ),
    # One row a switch port and sample (10 ms); everything but the backlog is cumulative.
    "queue": (
        *PORT,
        Column("tx_bytes", INTEGER, "bytes", "sent into the link, headers included, cumulative"),
        Column("backlog_bytes", INTEGER, "bytes", "waiting in the port's queue at this instant"),
        Column("drops", INTEGER, "packets", "dropped by the queue, cumulative"),
        Column("marks", INTEGER, "segments", "marked with ECN's CE, cumulative"),
    ),
    # One row a switch port, queue and sample: 10 ms where packets are computed, 1 s where a rack's switches count them.
    "port_queues": (
        *PORT,
        Column("queue", INTEGER, "", "the switch's number of it; where computed, 0 is served last, 7 is that of CNPs"),
        Column("tx_bytes", INTEGER, "bytes", "sent into the link, headers included, cumulative"),
        Column("backlog_bytes", INTEGER, "bytes", "waiting in the queue at this instant"),
        Column("watermark_bytes", INTEGER, "bytes", "the most since the switch read it last; of a rack's switch only"),
        Column("average_bytes", INTEGER, "bytes", "RED's average of the queue; null for other kinds of queues"),
        Column("drops", INTEGER, "packets", "dropped by the queue, cumulative"),
        Column("marks", INTEGER, "segments", "marked with ECN's CE, cumulative"),
        Column("pauses", INTEGER, "packets", "PFC's pause frames that the queue obeyed, cumulative"),
        Column("paused_us", REAL, "us", "for which it obeyed them, cumulative"),
    ),
    # One row a switch whose ports share a buffer, and sample (10 ms); computed packet by packet only.
    "switch_buffers": (
        Column("shared_bytes", INTEGER, "bytes", "in use of what ports share, at this instant"),
        Column("headroom_bytes", INTEGER, "bytes", "in use of the links' headroom, at this instant"),
        Column("most_bytes", INTEGER, "bytes", "the most that both together have held"),
    ),
    # One row a switch port, marked host and sample (10 ms); cumulative.
    "marks": (
        *PORT,
        Column("source", TEXT, "", "host that sent the marked packets; its IPv4 address where no host has that"),
        Column("marks", INTEGER, "segments", "of that source, marked by this port with ECN's CE, cumulative"),
    ),
    # One row a counter and sample (10 ms); cumulative but for what the counter's name says is a state.
    "device_counters": (
        Column("device", TEXT, "", "RDMA device and port (`mlx5_0/1`), network interface, or transport"),
        Column("source", TEXT, "", "`rdma hw`, `rdma port`, `ethtool`, `transport`, or `link`, whose `up` is 1 or 0"),
        Column("counter", TEXT, "", "the source's own name of the counter"),
        Column("value", INTEGER, OF_ROW, "as the counter stood; null where it had vanished"),
        Column("unit", TEXT, "", "unit of `value`"),
        Column("width_bits", INTEGER, "", "of the counter: one of 32 bits wraps, a narrower one stops at its most"),
    ),
    # One row a host and measurement of its clock.
    "clock": (
        Column("phase", TEXT, "", "`anchor` (when the run's clock was set), `before`, `during` or `after` the trial"),
        Column("offset_ns", INTEGER, RUN_NS, "what must be added to host_ns to get the run's clock"),
        Column("bound_ns", INTEGER, "ns", "half the quickest round trip; 0 where host and controller share a clock"),
        Column("utc_ns", INTEGER, RUN_NS, "what the host took for UTC at that instant"),
        Column("sync", TEXT, "", "JSON: what chrony and PTP say of this clock, or `none`; null if it was not read"),
    ),
    # One row a window of about 1 s, of each host, or of the controller where that is their CPU; host_ns and
    # controller_ns are its end.
    "cpu": (
        Column("window_ms", REAL, "ms", "length of the window"),
        Column("busy_share", REAL, "share", "of all cores' time, steal included"),
        Column("steal_share", REAL, "share", "of all cores' time, taken by other virtual machines"),
        Column("softirq_share", REAL, "share", "of all cores' time, in the kernel's soft interrupts; part of busy"),
        Column("softnet_dropped", INTEGER, "packets", "dropped by the network stack for want of CPU, in this window"),
        Column("softnet_squeezed", INTEGER, "", "times the network stack ran out of its budget, in this window"),
    ),
    # One row a connection, at the end of the trial.
    "flows": (
        *WORKER,
        Column("flow", INTEGER, "", "number of the connection among those to the peer, from 0"),
        Column("peer", TEXT, "", "host at the connection's other end"),
        Column("peer_rank", INTEGER, "", "the worker there; null in runs that had rings only"),
        Column("congestion_control", TEXT, "", "the kernel's name for it; by RDMA null, as are counts of segments"),
        Column("local_port", INTEGER, "", "port on this host, TCP's or RDMA's"),
        Column("remote_port", INTEGER, "", "port on the peer"),
        Column("bytes_acked", INTEGER, "bytes", "payload that the peer acknowledged"),
        Column("retransmitted", INTEGER, "segments", "sent again"),
        Column("delivered_segments", INTEGER, "segments", "acknowledged"),
        Column("delivered_ce_segments", INTEGER, "segments", "of them, echoed as marked by ECN"),
    ),
    # One row a host and counter of its reaction point, over the trial.
    "reactions": (
        Column("transport", TEXT, "", "the transport, `dcqcn` for example"),
        Column("counter", TEXT, "", "the transport's own name of the counter"),
        Column("before", REAL, "", "value before the trial, in the host's units"),
        Column("after", REAL, "", "value after the trial, in the host's units"),
    ),
    # One row a captured packet. Older runs hold bytes as they were on the wire (unit_conversion.py).
    "packets": (
        Column("time_ns", INTEGER, RUN_NS, "the capture's stamp: UTC of the host; null where the file has none"),
        Column("direction", NAME, "", "`out` or `in`, by the host's own addresses; null where they do not show it"),
        Column("frame_bytes", U32, "bytes", "the whole frame, whatever of it was captured"),
        Column("vlan_id", U16, "", "the outermost VLAN tag's; null without one"),
        Column("vlan_pcp", U8, "", "priority in the outermost VLAN tag"),
        Column("inner_vlan_id", U16, "", "the second VLAN tag's (QinQ, or of the frame in VXLAN)"),
        Column("ip_version", U8, "", "4 or 6; null for what is not IP"),
        Column("source", NAME, "", "IP address; of RoCE v1 the GID"),
        Column("destination", NAME, "", "IP address; of RoCE v1 the GID"),
        Column("protocol", U8, "", "of what IP carries, after IPv6's extension headers: 6 is TCP, 17 UDP"),
        Column("source_port", U16, "", "TCP or UDP; null in all but the first fragment"),
        Column("destination_port", U16, "", "TCP or UDP; 4791 is RoCEv2"),
        Column("fragment_offset", U16, "wire bytes", "where an IP fragment begins; null for a whole packet"),
        Column("payload_bytes", U32, "bytes", "data of TCP or UDP; of RoCE without its headers, padding and checksum"),
        Column("dscp", U8, "", "differentiated services"),
        Column("ecn", U8, "", "3 is CE, a mark; 1 and 2 can be marked; 0 cannot"),
        Column("tcp_flags", U16, "", "as in the header, 12 bits"),
        Column("tcp_seq", U32, "", "sequence number, as in the header"),
        Column("tcp_ack", U32, "", "acknowledgement number, as in the header"),
        Column("flow", U32, "", "number of source, destination and ports (RoCE: queue pair) on this host, from 0"),
        Column("bth_opcode", U8, "", "RoCE: InfiniBand opcode"),
        Column("cnp", TRUTH, "", "RoCE: whether this is a congestion notification"),
        Column("destination_qp", U32, "", "RoCE: queue pair that it is for"),
        Column("psn", U32, "", "RoCE: packet sequence number, 24 bits"),
        Column("vxlan_vni", U32, "", "VXLAN: the network's identifier; IP and all it carries are of the frame inside"),
        Column("outer_dscp", U8, "", "VXLAN: of the IP header outside"),
        Column("outer_ecn", U8, "", "VXLAN: of the IP header outside, where the underlay's switches mark"),
        Column("paused_priorities", U8, "", "PFC: a bit for each priority in a pause; null in a pause of the link"),
        Column("pause_quanta", U16, "", "pauses: the longest time, of 512 bit times each; 0 resumes"),
        Column(
            "undecoded",
            NAME,
            "",
            "why less is known: `truncated`, `malformed`, `not IP`, `link type`, `protocol` (one that is not decoded "
            "in IP, UDP, GRE or RoCE), `fragment` (the ports are in the first); else null",
        ),
    ),
    # One row a NIC of a host that was captured; host_ns and controller_ns are when its capture began.
    "captures": (
        Column("device", TEXT, "", "where tcpdump captured: an RDMA device if it can, or an interface"),
        Column("files", INTEGER, "", "kept in the trial's folder, under captures/<host>/"),
        Column("file_bytes", INTEGER, "file bytes", "their size"),
        Column("captured", INTEGER, "packets", "written by tcpdump"),
        Column("received", INTEGER, "packets", "seen by tcpdump, dropped ones included"),
        Column("dropped_by_kernel", INTEGER, "packets", "lost, since tcpdump was too slow; null at an RDMA device"),
        Column("dropped_by_interface", INTEGER, "packets", "lost before the kernel saw them; null at an RDMA device"),
        Column("overwritten", INTEGER, "packets", "the oldest, for which the budget had no room"),
        Column("decoded", INTEGER, "packets", "rows in `packets`"),
        Column("truncated", INTEGER, "packets", "of them, with headers that were captured in part"),
        Column("malformed", INTEGER, "packets", "of them, with headers that contradict themselves"),
        Column("not_ip", INTEGER, "packets", "of them, neither IP nor RoCE v1 nor a pause"),
        Column("undecoded_protocols", TEXT, "", "JSON: packets by the protocol at which decoding ended"),
        Column("utc_moved_ns", INTEGER, "ns", "how much the host's UTC gained on its monotonic clock meanwhile"),
    ),
    # One row a cross traffic of a trial; host is its sender, host_ns and controller_ns are the end of the trial.
    "cross_traffic": (
        TRAFFIC,
        Column("kind", TEXT, "", "consistent, burst, iperf, checkpoint, incast or kv-cache"),
        Column("asked_gbps", REAL, "Gbit/s", "requested load, payload"),
        Column("planned_gbps", REAL, "Gbit/s", "load of the flows drawn"),
        Column("planned_gbps_standard_error", REAL, "Gbit/s", "of that, since sizes are drawn"),
        Column("offered_gbps", REAL, "Gbit/s", "load of the flows that were due while the jobs ran"),
        Column("achieved_gbps", REAL, "Gbit/s", "payload that receivers took while the jobs ran"),
        Column("schedule_held", TRUTH, "", "whether flows began when they were due, and were carried"),
        Column("lagging_share", REAL, "share", "of flows that began too late"),
        Column("lateness_p99_us", REAL, "us", "99th percentile of actual less intended start"),
        Column("due_flows", INTEGER, "flows", "whose time came"),
        Column("finished_flows", INTEGER, "flows", "whose receiver had all"),
        Column("unfinished_flows", INTEGER, "flows", "under way, or waiting, at the end"),
        Column(
            "parallel", INTEGER, "", "iperf's connections (-P); null for all else, as the columns before it for iperf"
        ),
    ),
    # One row a flow of cross traffic that was due; host_ns and controller_ns are its intended start.
    "cross_flows": (
        TRAFFIC,
        Column("flow", INTEGER, "", "its place in the load, from 0"),
        Column("class", TEXT, "", "of the load: its kind; burst or quiet of bursts"),
        Column("destination", TEXT, "", "host that received it"),
        Column("bytes", INTEGER, "bytes", "payload"),
        Column("measured", TRUTH, "", "whether it was due after the warm-up"),
        Column("start_ns", INTEGER, RUN_NS, "actual start, on the run's clock; null: never"),
        Column("end_ns", INTEGER, RUN_NS, "when the receiver had all, on the run's clock; null: never"),
    ),
    # One row a trial: the attempt that counts. host_ns and controller_ns are its start.
    "trials": (
        Column("job", TEXT, "", "the only job that ran; null where all of them did"),
        Column("valid", TRUTH, "", "whether nothing disturbed the trial and nothing of it is wrong"),
        Column("reason", TEXT, "", "why it is disturbed or invalid; empty for a valid trial"),
        Column("started_utc", TEXT, "", "ISO 8601"),
        Column("ended_utc", TEXT, "", "ISO 8601"),
        Column("busy_max", REAL, "share", "busiest CPU window"),
        Column("steal_max", REAL, "share", "window with most steal"),
        Column("late_p90_ms", REAL, "ms", "90th percentile over a job's iterations of its latest worker's late_ms"),
        Column("steal_mean", REAL, "share", "of the CPU over the whole trial, on the host with most"),
        Column("stalled_share", REAL, "share", "of the trial: the worst link carried nothing though packets waited"),
        Column("disturbed", TRUTH, "", "whether the trial is not valid, but only for want of CPU; null in older runs"),
        Column(
            "disturbance", REAL, "share", "by which iterations may have been longer for want of CPU; null in older runs"
        ),
        Column("feedback_us", REAL, "us", "mean from a mark to the cut of a rate; null where it was not measured"),
    ),
}


def columns(table: str) -> tuple[Column, ...]:
    """Return all columns of the table named `table`, beginning with the common columns."""
    return COMMON + TABLES[table]


def schema(table: str) -> pa.Schema:
    """Return the Arrow schema of the table named `table`. Its metadata contain the version and the units."""
    return _schema(table, columns(table))


def bare_schema(table: str) -> pa.Schema:
    """Return the Arrow schema of the table named `table` without the columns that identify a run's trial."""
    return _schema(table, TABLES[table])


def _schema(table: str, described: tuple[Column, ...]) -> pa.Schema:
    fields = [
        pa.field(column.name, column.type, metadata={"unit": column.unit, "about": column.about})
        for column in described
    ]
    return pa.schema(fields, metadata={"roundabout.table": table, "roundabout.version": str(VERSION)})
