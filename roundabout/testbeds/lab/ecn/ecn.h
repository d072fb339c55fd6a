// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Pinned hash maps, which the marking programs share with the tool that attaches them and with readers of counters:
// `ports` and `configs` (key: __u32 ifindex of a switch's port; value: struct ecn_port, struct ecn_config),
// `sources` (key: struct ecn_source; value: __u64 marks), and `echoes` (key as of ports; value: struct ecn_echoes).
// Only the programs write counters, so that none is lost.
#ifndef ROUNDABOUT_ECN_H
#define ROUNDABOUT_ECN_H

#include <linux/types.h>

#define ECN_CERTAIN 65536 // a probability of 1
#define ECN_MAX_SOURCES 4096
#define ECN_DSCPS 64
#define ECN_QUEUES 8 // at most, a power of two

// HTB's classes, as network.py makes them: for CNPs, for the queue that is served last, and for the other queues.
#define ECN_CLASS_CNPS 0x10003
#define ECN_CLASS_LAST 0x10002
#define ECN_CLASS_OF(queue) (0x10010 + (queue))

// The key for marks by port and source. Marks of sources beyond ECN_MAX_SOURCES are counted by port only.
struct ecn_source {
  __u32 ifindex;
  __u32 address; // IPv4, in network byte order
};

// A port's counters, since it was made. Packets and marks are wire segments: a super-packet counts as its segments.
struct ecn_port {
  __u64 packets;
  __u64 bytes; // on the wire, Ethernet header included, preamble and CRC not
  __u64 ect_packets;
  __u64 marks;
};

// The echoes of a port's marks that were measured, and their times from the mark to the sender's device, together.
struct ecn_echoes {
  __u64 count;
  __u64 ns;
};

struct ecn_config {
  // WRED thresholds (Zhu et al., SIGCOMM'15, Figure 5): no mark below kmin, probability rising to pmax at kmax, then 1.
  __u32 kmin_bytes;
  __u32 kmax_bytes;
  __u32 pmax_of_65536;
  __u32 limit_bytes; // for the virtual queue, where the kernel does not show the real one
  __u64 drain_bytes_per_s;
  // Strict priority, where there is more than one queue: a higher one is served first, and 0 last.
  __u32 queues;
  // Number of the real link's packets that a segment represents, each of which may be marked. 0: a super-packet is
  // marked as one packet.
  __u32 packets;
  __u8 queue_of_dscp[ECN_DSCPS];
};

#endif
