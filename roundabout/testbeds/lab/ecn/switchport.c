// SPDX-License-Identifier: Apache-2.0
// switchport: gives a lab's switch ports their ECN marking and their routes, and reads their counters.
//
//   switchport attach OBJECT PINS [PROGRAM]   one port a line on stdin:
//                                             PID FAR_PID FAR_IFINDEX IFINDEX KMIN KMAX PMAX LIMIT DRAIN DSCP:QUEUE...
//   switchport set PINS                       the same lines from IFINDEX on; counters stay
//   switchport show PINS                      the ports as JSON
//   switchport forward OBJECT PINS            forward by routes at the ports on stdin, one a line: PID IFINDEX
//   switchport set-routes PINS                replace all routes by those on stdin, one a line:
//                                             IFINDEX SENDER RECEIVER SENDER_PORT RECEIVER_PORT OUT_IFINDEX
//   switchport show-routes PINS               the routes as JSON, with the bytes that took each
//   switchport faults OBJECT PINS             let packets be lost at the devices on stdin, one a line: PID IFINDEX
//   switchport set-faults PINS                lose packets that arrive at devices, one a line: IFINDEX LOSS, of 65536
//   switchport show-faults PINS               the faults as JSON, with the packets that were lost at each
//   switchport release PINS                   unpin, and wait until the kernel has freed it all
//
// PID names the switch's network namespace, FAR_PID and FAR_IFINDEX the device at the cable's other end, KMIN, KMAX and
// LIMIT are bytes, PMAX a probability, DRAIN bytes a second. Packets of a DSCP wait in its QUEUE, all others in queue
// 0, which is served last. PROGRAM records the port's backlog; by default it is the best one that the kernel can run.
// PINS is a folder on a bpffs, where the maps of ecn.h are pinned.
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <linux/limits.h>

#include "../faults/faults.h"
#include "../forwarding/routes.h"
#include "ecn.h"
#include "switch_programs.h"

#define RELEASE_TIMEOUT_MS 5000
#define MARKING "mark_departing"
#define BEFORE_FORWARDING 1 // filter priority

static const char *const pinned[] = {"ports", "configs", "sources", "echoes", ROUTES, FAULTS};
#define PINNED (sizeof(pinned) / sizeof(*pinned))
#define OF_MARKING (PINNED - 2)

struct port_line {
  int pid;
  int far_pid;
  __u32 far_ifindex;
  __u32 ifindex;
  struct ecn_config config;
};

static int quiet(enum libbpf_print_level level, const char *format, va_list arguments) {
  return level == LIBBPF_WARN && getenv("SWITCHPORT_DEBUG") ? vfprintf(stderr, format, arguments) : 0;
}

// Reads DSCPs with their queues from the rest of a line. Returns true if it contains nothing else.
static int read_queues(const char *text, struct ecn_config *config) {
  unsigned dscp, queue;
  int length;

  config->queues = 1;
  for (; sscanf(text, "%u:%u%n", &dscp, &queue, &length) == 2; text += length) {
    if (dscp >= ECN_DSCPS || queue >= ECN_QUEUES)
      return 0;
    config->queue_of_dscp[dscp] = queue;
    if (config->queues <= queue)
      config->queues = queue + 1;
  }
  return text[strspn(text, " \n")] == '\0';
}

// 1: a line was read; 0: end of input; -EINVAL: nonsense.
static int read_line(struct port_line *line, int with_places) {
  char text[1024];
  int places = 0, figures = 0;
  double pmax;

  if (!fgets(text, sizeof(text), stdin))
    return 0;
  memset(line, 0, sizeof(*line));
  if (with_places && sscanf(text, "%d %d %u %n", &line->pid, &line->far_pid, &line->far_ifindex, &places) != 3)
    return -EINVAL;
  if (sscanf(text + places, "%u %u %u %lf %u %llu %u%n", &line->ifindex, &line->config.kmin_bytes,
             &line->config.kmax_bytes, &pmax, &line->config.limit_bytes, &line->config.drain_bytes_per_s,
             &line->config.packets, &figures) != 7 ||
      !read_queues(text + places + figures, &line->config))
    return -EINVAL;
  if (pmax < 0 || pmax > 1 || line->config.kmin_bytes > line->config.kmax_bytes)
    return -EINVAL;
  line->config.pmax_of_65536 = pmax * ECN_CERTAIN;
  return 1;
}

// Returns true if the kernel has the cast to its own sk_buff, which is needed to read the qdisc's backlog.
static int kernel_shows_backlog(void) {
  struct btf *btf = btf__load_vmlinux_btf();
  int shown = btf && btf__find_by_name_kind(btf, "bpf_cast_to_kern_ctx", BTF_KIND_FUNC) > 0;

  btf__free(btf);
  return shown;
}

static struct bpf_program *load(struct bpf_object *object, const char *wanted) {
  struct bpf_program *program;

  bpf_object__for_each_program(program, object) bpf_program__set_autoload(
      program, !strcmp(bpf_program__name(program), wanted) || !strcmp(bpf_program__name(program), MARKING));
  return bpf_object__load(object) ? NULL : bpf_object__find_program_by_name(object, wanted);
}

static __u32 id_of(int program) {
  struct bpf_prog_info info = {};
  __u32 size = sizeof(info);

  return bpf_obj_get_info_by_fd(program, &info, &size) ? 0 : info.id;
}

static int map_of(const struct bpf_object *object, const char *name) {
  return bpf_object__find_map_fd_by_name(object, name);
}

static int attach_port(const struct port_line *line, const struct bpf_object *object, int program) {
  static const char nothing[128];
  static const struct ecn_port uncounted;
  static const struct ecn_echoes unheard;
  int marking = bpf_program__fd(bpf_object__find_program_by_name(object, MARKING));
  int error = bpf_map_update_elem(map_of(object, "configs"), &line->ifindex, &line->config, BPF_NOEXIST);

  if (!error)
    error = bpf_map_update_elem(map_of(object, "ports"), &line->ifindex, &uncounted, BPF_NOEXIST);
  if (!error)
    error = bpf_map_update_elem(map_of(object, "echoes"), &line->ifindex, &unheard, BPF_NOEXIST);
  // A queue starts empty. Only the eBPF programs use its layout.
  if (!error)
    error = bpf_map_update_elem(map_of(object, "queues"), &line->ifindex, nothing, BPF_NOEXIST);
  if (!error)
    error = bpf_map_update_elem(map_of(object, "far_ends"), &line->far_ifindex, &line->ifindex, BPF_NOEXIST);
  if (!error)
    error = attach_to(line->pid, line->ifindex, BPF_TC_EGRESS, program, FIRST_HANDLE, BEFORE_FORWARDING);
  return error ? error
               : attach_to(line->far_pid, line->far_ifindex, BPF_TC_INGRESS, marking, FIRST_HANDLE, BEFORE_FORWARDING);
}

static int pin_maps(const struct bpf_object *object, const char *pins) {
  int error = 0;

  for (size_t i = 0; i < OF_MARKING && !error; i++)
    error = pin_map(object, pins, pinned[i]);
  return error;
}

static int attach(const char *object_path, const char *pins, const char *wanted) {
  struct bpf_object *object = bpf_object__open_file(object_path, NULL);
  struct bpf_program *program;
  struct port_line line;
  int status;

  if (!object)
    return fail(object_path, errno);
  program = load(object, wanted);
  if (!program)
    return fail("the kernel refused the marking program", errno);
  status = pin_maps(object, pins);
  if (status)
    return fail(pins, status);
  while ((status = read_line(&line, 1)) > 0) {
    status = attach_port(&line, object, bpf_program__fd(program));
    if (status) {
      fprintf(stderr, "switchport: port %u of process %d, and device %u of process %d: ", line.ifindex, line.pid,
              line.far_ifindex, line.far_pid);
      return fail("attaching failed", status);
    }
  }
  if (status < 0)
    return fail("a port on stdin makes no sense", status);
  printf("{\"program\":\"%s\",\"id\":%u}\n", wanted, id_of(bpf_program__fd(program)));
  bpf_object__close(object);
  return 0;
}

static int set(const char *pins) {
  int configs = open_pinned(pins, "configs"), status;
  struct port_line line;

  if (configs < 0)
    return fail(pins, configs);
  while ((status = read_line(&line, 0)) > 0)
    if (bpf_map_update_elem(configs, &line.ifindex, &line.config, BPF_EXIST))
      return fail(errno == ENOENT ? "no such port" : "setting a port failed", errno);
  return status < 0 ? fail("a port on stdin makes no sense", status) : 0;
}

static int show(const char *pins) {
  int ports = open_pinned(pins, "ports"), configs = open_pinned(pins, "configs"), echoes = open_pinned(pins, "echoes");
  const char *separator = "";
  struct ecn_port port;
  struct ecn_config config;
  struct ecn_echoes echoed;
  __u32 *previous = NULL, ifindex;

  if (ports < 0 || configs < 0 || echoes < 0)
    return fail(pins, ports < 0 ? ports : configs < 0 ? configs : echoes);
  printf("[");
  while (!bpf_map_get_next_key(ports, previous, &ifindex)) {
    if (!bpf_map_lookup_elem(ports, &ifindex, &port) && !bpf_map_lookup_elem(configs, &ifindex, &config) &&
        !bpf_map_lookup_elem(echoes, &ifindex, &echoed)) {
      printf("%s{\"ifindex\":%u,\"packets\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"ect_packets\":%" PRIu64
             ",\"marks\":%" PRIu64 ",\"echoes\":%" PRIu64 ",\"echo_ns\":%" PRIu64
             ",\"kmin_bytes\":%u,\"kmax_bytes\":%u,\"pmax\":%.17g,\"packets_per_segment\":%u}",
             separator, ifindex, (uint64_t)port.packets, (uint64_t)port.bytes, (uint64_t)port.ect_packets,
             (uint64_t)port.marks, (uint64_t)echoed.count, (uint64_t)echoed.ns, config.kmin_bytes, config.kmax_bytes,
             (double)config.pmax_of_65536 / ECN_CERTAIN, config.packets);
      separator = ",";
    }
    previous = &ifindex;
  }
  printf("]\n");
  return 0;
}

// Unpins a map. Returns its id, 0 if there was none (`attach` was killed before it pinned the map), or a negative
// errno.
static int unpin(const char *pins, const char *name) {
  struct bpf_map_info info = {};
  __u32 size = sizeof(info);
  char path[PATH_MAX];
  int map = open_pinned(pins, name), error = pin_path(path, pins, name);

  if (map < 0)
    return map == -ENOENT ? 0 : map;
  if (!error && (bpf_obj_get_info_by_fd(map, &info, &size) || unlink(path)))
    error = -errno;
  close(map);
  return error ? error : (int)info.id;
}

static int is_alive(int id) {
  int map = bpf_map_get_fd_by_id(id);

  if (map >= 0)
    close(map);
  return map >= 0;
}

// Waits until the kernel has freed the maps. It destroys namespaces, with the programs attached there, asynchronously.
static int release(const char *pins) {
  int waited_ms = 0, ids[PINNED];

  for (size_t i = 0; i < PINNED; i++) {
    ids[i] = unpin(pins, pinned[i]);
    if (ids[i] < 0)
      return fail(pins, ids[i]);
  }
  for (size_t i = 0; i < PINNED; i++)
    for (; is_alive(ids[i]); waited_ms += 2) {
      if (waited_ms >= RELEASE_TIMEOUT_MS) {
        fprintf(stderr, "switchport: the counters of %s are still in use\n", pins);
        return 1;
      }
      usleep(2000);
    }
  return 0;
}

int main(int count, char **words) {
  libbpf_set_print(quiet);
  if (count == 4 && !strcmp(words[1], "attach"))
    return attach(words[2], words[3], kernel_shows_backlog() ? "mark_by_backlog" : "mark_by_virtual_queue");
  if (count == 5 && !strcmp(words[1], "attach"))
    return attach(words[2], words[3], words[4]);
  if (count == 3 && !strcmp(words[1], "set"))
    return set(words[2]);
  if (count == 3 && !strcmp(words[1], "show"))
    return show(words[2]);
  if (count == 4 && !strcmp(words[1], "forward"))
    return attach_forwarding(words[2], words[3]);
  if (count == 3 && !strcmp(words[1], "set-routes"))
    return set_routes(words[2]);
  if (count == 3 && !strcmp(words[1], "show-routes"))
    return show_routes(words[2]);
  if (count == 4 && !strcmp(words[1], "faults"))
    return attach_faults(words[2], words[3]);
  if (count == 3 && !strcmp(words[1], "set-faults"))
    return set_faults(words[2]);
  if (count == 3 && !strcmp(words[1], "show-faults"))
    return show_faults(words[2]);
  if (count == 3 && !strcmp(words[1], "release"))
    return release(words[2]);
  fprintf(stderr, "usage: switchport attach OBJECT PINS [PROGRAM] | set PINS | show PINS | forward OBJECT PINS |\n"
                  "       set-routes PINS | show-routes PINS | faults OBJECT PINS | set-faults PINS |\n"
                  "       show-faults PINS | release PINS\n");
  return 2;
}
