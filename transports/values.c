// SPDX-License-Identifier: Apache-2.0
#include "values.h"
#include "dcqcn.h"
#include "registry.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

// One parameter: its name in the papers, where it lives, and what one unit of it is in the kernel's entry.
struct parameter {
  const char *name;
  size_t offset;
  size_t size;
  double unit;
  double least;
};

#define MBPS 125000.0 // bytes per second
#define Q24 16777216.0
#define PARAMETER(name, field, unit, least)                                                                            \
  { name, offsetof(struct dcqcn_params, field), sizeof(((struct dcqcn_params *)0)->field), unit, least }

static const struct parameter parameters[] = {
    PARAMETER("T_us", T_us, 1, 1),
    PARAMETER("F", F, 1, 1),
    PARAMETER("byte_counter_bytes", byte_counter, 1, 0),
    PARAMETER("R_AI_mbps", R_AI, MBPS, 0),
    PARAMETER("R_HAI_mbps", R_HAI, MBPS, 0),
    PARAMETER("R_min_mbps", R_min, MBPS, 0.001),
    PARAMETER("R_max_mbps", R_max, MBPS, 0.001),
    PARAMETER("g", g_q24, Q24, 0),
    PARAMETER("alpha_timer_us", alpha_timer_us, 1, 1),
    PARAMETER("cnp_gap_us", cnp_gap_us, 1, 0),
};
#define PARAMETERS (sizeof(parameters) / sizeof(parameters[0]))

// NVIDIA's defaults (rpg_*, dce_tcp_*) for a 50 Gbit/s line; dce_tcp_g, 1019 of 1024, is 1 - g.
static const struct dcqcn_params defaults = {
    .T_us = 300,
    .F = 1,
    .byte_counter = 32767,
    .R_AI = 5 * (__u64)MBPS,
    .R_HAI = 50 * (__u64)MBPS,
    .R_min = (__u64)MBPS,
    .R_max = 50000 * (__u64)MBPS,
    .g_q24 = (__u32)(Q24 * 5 / 1024),
    .alpha_timer_us = 1,
    .cnp_gap_us = 4,
};

static const __u64 default_host = 0;

static int this_host(__u64 *cookie) {
  socklen_t size = sizeof(*cookie);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int error = fd < 0 || getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, cookie, &size) < 0 ? errno : 0;
  if (fd >= 0)
    close(fd);
  return error ? fail("this kernel does not tell a network namespace's cookie (SO_NETNS_COOKIE, Linux 5.14): %s",
                      strerror(error))
               : 0;
}

static double read_parameter(const struct dcqcn_params *params, const struct parameter *parameter) {
  const char *at = (const char *)params + parameter->offset;
  return (parameter->size == 8 ? (double)*(const __u64 *)at : (double)*(const __u32 *)at) / parameter->unit;
}

static void write_parameter(struct dcqcn_params *params, const struct parameter *parameter, double value) {
  char *at = (char *)params + parameter->offset;
  double scaled = round(value * parameter->unit);
  if (parameter->size == 8)
    *(__u64 *)at = (__u64)scaled;
  else
    *(__u32 *)at = (__u32)scaled;
}

static const struct parameter *find_parameter(const char *name, size_t length) {
  for (size_t i = 0; i < PARAMETERS; i++)
    if (strlen(parameters[i].name) == length && strncmp(parameters[i].name, name, length) == 0)
      return &parameters[i];
  return NULL;
}

static int unknown_parameter(const char *assignment) {
  fprintf(stderr, "transport: found '%s', expected PARAMETER=VALUE with PARAMETER one of", assignment);
  for (size_t i = 0; i < PARAMETERS; i++)
    fprintf(stderr, " %s", parameters[i].name);
  fputc('\n', stderr);
  return 2;
}

static int assign(struct dcqcn_params *params, const char *assignment) {
  const char *equals = strchr(assignment, '=');
  const struct parameter *parameter = equals ? find_parameter(assignment, (size_t)(equals - assignment)) : NULL;
  if (!parameter)
    return unknown_parameter(assignment);
  char *end;
  double value = strtod(equals + 1, &end);
  double most = (parameter->size == 8 ? 9e18 : 4294967295.0) / parameter->unit;
  if (end == equals + 1 || *end || !(value >= parameter->least && value <= most))
    return fail("%s: found '%s', expected a number from %g to %g", parameter->name, equals + 1, parameter->least, most),
           2;
  write_parameter(params, parameter, value);
  return 0;
}

int values_set(const char *name, int count, char **assignments) {
  __u64 host;
  struct dcqcn_params params;
  struct dcqcn_counters zero = {0};
  int params_map = registry_map(name, "params");
  int counters_map = params_map < 0 ? -1 : registry_map(name, "counters");
  if (counters_map < 0 || this_host(&host))
    return 1;
  if (bpf_map_lookup_elem(params_map, &host, &params) && bpf_map_lookup_elem(params_map, &default_host, &params))
    return fail("%s has no default parameters: %s", name, strerror(errno));
  for (int i = 0; i < count; i++) {
    int status = assign(&params, assignments[i]);
    if (status)
      return status;
  }
  if (bpf_map_update_elem(counters_map, &host, &zero, BPF_NOEXIST) && errno != EEXIST)
    return fail("cannot keep %s's counters: %s", name, strerror(errno));
  if (bpf_map_update_elem(params_map, &host, &params, BPF_ANY))
    return fail("cannot set %s's parameters: %s", name, strerror(errno));
  return values_get(name);
}

int values_unset(const char *name) {
  __u64 host;
  int params_map = registry_map(name, "params");
  int counters_map = params_map < 0 ? -1 : registry_map(name, "counters");
  if (counters_map < 0 || this_host(&host))
    return 1;
  if (bpf_map_delete_elem(params_map, &host) && errno != ENOENT)
    return fail("cannot unset %s's parameters: %s", name, strerror(errno));
  bpf_map_delete_elem(counters_map, &host);
  return values_get(name);
}

static void print_counters(const struct dcqcn_counters *c, double T_us) {
  printf("\"counters\": {\"acks\": %llu, \"active_us\": %llu, \"feedback_per_T\": %.3f, \"segments\": %llu, "
         "\"segments_marked\": %llu, \"cnps\": %llu, \"losses\": %llu, \"fast_increases\": %llu, "
         "\"additive_increases\": %llu, \"hyper_increases\": %llu, \"rate_mbps\": %.3f, \"alpha\": %.6f, "
         "\"stage\": %u}",
         c->acks, c->active_us, c->active_us ? (double)c->acks * T_us / (double)c->active_us : 0, c->segments,
         c->segments_marked, c->cnps, c->losses, c->fast_increases, c->additive_increases, c->hyper_increases,
         (double)c->rate / MBPS, c->alpha_q24 / Q24, c->stage);
}

int values_get(const char *name) {
  __u64 host;
  struct dcqcn_params params;
  struct dcqcn_counters counters;
  int params_map = registry_map(name, "params");
  int counters_map = params_map < 0 ? -1 : registry_map(name, "counters");
  if (counters_map < 0 || this_host(&host))
    return 1;
  int own = bpf_map_lookup_elem(params_map, &host, &params) == 0;
  const __u64 *key = own ? &host : &default_host;
  if (bpf_map_lookup_elem(params_map, key, &params) || bpf_map_lookup_elem(counters_map, key, &counters))
    return fail("%s has no entry for this host and no default: %s", name, strerror(errno));

  printf("{\"transport\": \"%s\", \"own_entry\": %s, \"params\": {", name, own ? "true" : "false");
  for (size_t i = 0; i < PARAMETERS; i++)
    printf("%s\"%s\": %.9g", i ? ", " : "", parameters[i].name, read_parameter(&params, &parameters[i]));
  printf("}, ");
  print_counters(&counters, params.T_us);
  printf("}\n");
  return 0;
}

int values_write_default(int params, int counters) {
  struct dcqcn_counters zero = {0};
  if (bpf_map_update_elem(counters, &default_host, &zero, BPF_ANY) ||
      bpf_map_update_elem(params, &default_host, &defaults, BPF_ANY))
    return -errno;
  return 0;
}
