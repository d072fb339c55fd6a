// SPDX-License-Identifier: Apache-2.0
#include "routes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <bpf/bpf.h>

#include "../ecn/switch_programs.h"
#include "forward.h"

#define PROGRAM "forward"
#define BEHIND_MARKING 2 // filter priority: a packet is marked for its incoming cable before it is forwarded

int attach_forwarding(const char *object_path, const char *pins) {
  struct bpf_object *object = bpf_object__open_file(object_path, NULL);
  int status;

  if (!object)
    return fail(object_path, errno);
  if (bpf_object__load(object))
    return fail("the kernel refused the forwarding program", errno);
  status = pin_map(object, pins, ROUTES);
  if (status)
    return fail(pins, status);
  status = attach_to_all(object, PROGRAM, FIRST_HANDLE, BEHIND_MARKING);
  bpf_object__close(object);
  return status;
}

// A route of a flow at a port.
struct entry {
  struct route_key key; // must be first: comparisons of keys apply to entries
  struct route route;
};

struct entries {
  struct entry *at;
  size_t count;
};

static int compare_keys(const void *one, const void *other) { return memcmp(one, other, sizeof(struct route_key)); }

// Deletes the routes whose keys are not in the sorted `kept`. Returns 0 or -errno.
static int delete_others(int routes, const struct entries *kept) {
  struct route_key key, next;
  int more = !bpf_map_get_next_key(routes, NULL, &key);

  while (more) {
    more = !bpf_map_get_next_key(routes, &key, &next);
    if (!bsearch(&key, kept->at, kept->count, sizeof(*kept->at), compare_keys) && bpf_map_delete_elem(routes, &key))
      return -errno;
    key = next;
  }
  return 0;
}

// 1: a line was read; 0: end of input; -EINVAL: nonsense.
static int read_route(struct entry *entry) {
  struct route_key *key = &entry->key;
  struct route *route = &entry->route;
  char sender[INET_ADDRSTRLEN], receiver[INET_ADDRSTRLEN];
  unsigned short sender_port, receiver_port;
  int found =
      scanf("%u %15s %15s %hu %hu %u", &key->ifindex, sender, receiver, &sender_port, &receiver_port, &route->ifindex);

  if (found == EOF)
    return 0;
  if (found != 6 || inet_pton(AF_INET, sender, &key->sender) != 1 || inet_pton(AF_INET, receiver, &key->receiver) != 1)
    return -EINVAL;
  key->sender_port = htons(sender_port);
  key->receiver_port = htons(receiver_port);
  return 1;
}

// Reads all routes of stdin, sorted by key. Returns 0 or -errno; -EEXIST if a key is there twice.
static int read_routes(struct entries *entries) {
  for (;;) {
    struct entry entry = {0};
    int status = read_route(&entry);
    if (status < 0)
      return status;
    if (!status)
      break;
    struct entry *at = realloc(entries->at, (entries->count + 1) * sizeof(*at));
    if (!at)
      return -ENOMEM;
    entries->at = at;
    entries->at[entries->count++] = entry;
  }
  qsort(entries->at, entries->count, sizeof(*entries->at), compare_keys);
  for (size_t i = 1; i < entries->count; i++)
    if (!compare_keys(&entries->at[i - 1], &entries->at[i]))
      return -EEXIST;
  return 0;
}

// Returns what failed in read_routes().
static const char *reading_fault(int status) {
  switch (status) {
  case -EINVAL:
    return "a route on stdin makes no sense";
  case -EEXIST:
    return "two routes on stdin are for the same flow at the same port";
  default:
    return "reading the routes on stdin failed";
  }
}

// Sets the new routes before it deletes the old ones, so that packets in between have a route.
int set_routes(const char *pins) {
  int routes = open_pinned(pins, ROUTES), status;
  struct entries entries = {0};

  if (routes < 0)
    return fail(pins, routes);
  status = read_routes(&entries);
  if (status)
    return fail(reading_fault(status), status);
  for (size_t i = 0; i < entries.count; i++)
    if (bpf_map_update_elem(routes, &entries.at[i].key, &entries.at[i].route, BPF_ANY))
      return fail("setting a route failed", errno);
  status = delete_others(routes, &entries);
  free(entries.at);
  return status ? fail("deleting a route failed", status) : 0;
}

int show_routes(const char *pins) {
  int routes = open_pinned(pins, ROUTES);
  struct route_key *previous = NULL, key;
  const char *separator = "";
  struct route route;

  if (routes < 0)
    return fail(pins, routes);
  printf("[");
  for (; !bpf_map_get_next_key(routes, previous, &key); previous = &key) {
    char sender[INET_ADDRSTRLEN], receiver[INET_ADDRSTRLEN];
    if (bpf_map_lookup_elem(routes, &key, &route) || !inet_ntop(AF_INET, &key.sender, sender, sizeof(sender)) ||
        !inet_ntop(AF_INET, &key.receiver, receiver, sizeof(receiver)))
      continue;
    printf("%s{\"entered_by\":%u,\"sender\":\"%s\",\"receiver\":\"%s\",\"sender_port\":%u,\"receiver_port\":%u,"
           "\"left_by\":%u,\"bytes\":%" PRIu64 "}",
           separator, key.ifindex, sender, receiver, ntohs(key.sender_port), ntohs(key.receiver_port), route.ifindex,
           (uint64_t)route.bytes);
    separator = ",";
  }
  printf("]\n");
  return 0;
}
