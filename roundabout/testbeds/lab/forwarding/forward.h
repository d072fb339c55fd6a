// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The pinned hash map `routes` of a lab whose topology has several paths: by what a packet is and where it came in, the
// port that it leaves by. Addresses and ports are in network byte order.
#ifndef ROUNDABOUT_FORWARD_H
#define ROUNDABOUT_FORWARD_H

#include <linux/types.h>

#define FORWARD_MAX_ROUTES (1 << 18)

// Ports are 0 for all flows between two hosts that have no route of their own.
struct route_key {
  __u32 ifindex; // of the port where the packet came in, unique in a lab
  __u32 sender;
  __u32 receiver;
  __u16 sender_port;
  __u16 receiver_port;
};

struct route {
  __u32 ifindex; // of the port that it leaves by
  __u32 unused;
  __u64 bytes; // on the wire, Ethernet header included, since the route was set
};

#endif
