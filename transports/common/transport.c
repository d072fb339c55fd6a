// SPDX-License-Identifier: Apache-2.0
// transport: loads, lists, unloads congestion controls made of eBPF, and sets their parameters for a host.
//
// A transport is machine-wide: it is loaded once, counted by its users, and refused while another build is in use.
// Its parameters belong to a network namespace (a lab host, or a whole server), so applications need no change.
#include "object.h"
#include "registry.h"
#include "values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: transport load NAME --owner OWNER [--objects DIR]   load it if nobody did, and count OWNER as a user\n"
    "       transport unload NAME --owner OWNER                 the last user's leaving unloads it\n"
    "       transport list                                      what is loaded, its build and its users\n"
    "       transport set NAME PARAMETER=VALUE...               this network namespace's parameters\n"
    "       transport unset NAME                                back to the default parameters\n"
    "       transport get NAME                                  this namespace's parameters and counters\n"
    "       transport describe FILE.bpf.o                       what a program declares, with units and limits\n"
    "Output is JSON. Exit status: 0 done, 1 failed, 2 bad usage, 3 refused because another build is in use.\n";

static int bad_usage(void) {
  fputs(usage, stderr);
  return 2;
}

// The value that follows --NAME, or NULL.
static const char *option(int argc, char **argv, const char *name) {
  for (int i = 0; i + 1 < argc; i++)
    if (strcmp(argv[i], name) == 0)
      return argv[i + 1];
  return NULL;
}

int main(int argc, char **argv) {
  if (argc < 2)
    return bad_usage();
  const char *command = argv[1];
  if (strcmp(command, "--help") == 0)
    return fputs(usage, stdout) < 0;
  if (strcmp(command, "list") == 0 && argc == 2)
    return registry_list();
  if (argc < 3)
    return bad_usage();

  const char *name = argv[2];
  const char *owner = option(argc - 3, argv + 3, "--owner");
  const char *objects = option(argc - 3, argv + 3, "--objects");
  if (strcmp(command, "load") == 0 && owner)
    return registry_load(name, owner, objects);
  if (strcmp(command, "unload") == 0 && owner)
    return registry_unload(name, owner);
  if (strcmp(command, "get") == 0 && argc == 3)
    return values_get(name);
  if (strcmp(command, "describe") == 0 && argc == 3)
    return object_describe(name);
  if (strcmp(command, "unset") == 0 && argc == 3)
    return values_unset(name);
  if (strcmp(command, "set") == 0 && argc > 3)
    return values_set(name, argc - 3, argv + 3);
  return bad_usage();
}
