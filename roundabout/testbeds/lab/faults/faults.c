// SPDX-License-Identifier: Apache-2.0
#include "faults.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include <bpf/bpf.h>

#include "../ecn/switch_programs.h"
#include "fault.h"

#define PROGRAM "lose"
#define BESIDE_MARKING 1 // filter priority: before packets are forwarded

int attach_faults(const char *object_path, const char *pins) {
  struct bpf_object *object = bpf_object__open_file(object_path, NULL);
  int status;

  if (!object)
    return fail(object_path, errno);
  if (bpf_object__load(object))
    return fail("the kernel refused the program that loses packets", errno);
  if (attach_to_all(object, PROGRAM, SECOND_HANDLE, BESIDE_MARKING))
    return 1;
  status = pin_map(object, pins, FAULTS); // last: a map that is pinned means that all devices have the program
  bpf_object__close(object);
  return status ? fail(pins, status) : 0;
}

int set_faults(const char *pins) {
  int faults = open_pinned(pins, FAULTS), status;
  __u32 ifindex, loss;

  if (faults < 0)
    return fail(pins, faults);
  while ((status = scanf("%u %u", &ifindex, &loss)) == 2) {
    struct fault fault = {0};
    bpf_map_lookup_elem(faults, &ifindex, &fault); // keeps what was lost
    fault.loss = loss;
    if (bpf_map_update_elem(faults, &ifindex, &fault, BPF_ANY))
      return fail("setting a fault failed", errno);
  }
  return status == EOF ? 0 : fail("a fault on stdin makes no sense", EINVAL);
}

int show_faults(const char *pins) {
  int faults = open_pinned(pins, FAULTS);
  __u32 *previous = NULL, ifindex;
  const char *separator = "";
  struct fault fault;

  if (faults < 0)
    return fail(pins, faults);
  printf("[");
  for (; !bpf_map_get_next_key(faults, previous, &ifindex); previous = &ifindex)
    if (!bpf_map_lookup_elem(faults, &ifindex, &fault)) {
      printf("%s{\"ifindex\":%u,\"loss\":%u,\"lost\":%" PRIu64 "}", separator, ifindex, fault.loss,
             (uint64_t)fault.lost);
      separator = ",";
    }
  printf("]\n");
  return 0;
}
