// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The pinned hash map `faults` of a lab whose trials have events: by the device where a link's packets arrive, how many
// of them are lost. A device without an entry loses none.
#ifndef ROUNDABOUT_FAULT_H
#define ROUNDABOUT_FAULT_H

#include <linux/types.h>

#define FAULT_CERTAIN 65536 // a probability of 1
#define FAULT_MAX_DEVICES 8192

struct fault {
  __u32 loss; // probability that a packet is lost, of FAULT_CERTAIN
  __u32 unused;
  __u64 lost; // wire segments
};

#endif
