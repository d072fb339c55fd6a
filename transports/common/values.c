// SPDX-License-Identifier: Apache-2.0
#include "values.h"
#include "declarations.h"
#include "errors.h"
#include "registry.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

// One of a loaded transport's maps, and one entry of it. A transport without such a map has no members.
struct values {
  int map;
  struct declarations declared;
  void *entry;
};

static int this_host(__u64 *cookie) {
  socklen_t size = sizeof(*cookie);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int error = fd < 0 || getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, cookie, &size) < 0 ? errno : 0;
  if (fd >= 0)
    close(fd);
  return error ? fail("this kernel does not report a network namespace's cookie (SO_NETNS_COOKIE, Linux 5.14): %s",
                      strerror(error))
               : 0;
}

static int open_values(const char *name, const char *which, struct values *values) {
  memset(values, 0, sizeof(*values));
  values->map = registry_map(name, which);
  if (values->map < 0)
    return 0;
  if (declarations_of_map(values->map, &values->declared))
    return fail("%s's %s cannot be read: %s", name, which, values->declared.error);
  values->entry = calloc(1, values->declared.entry_bytes);
  return values->entry ? 0 : fail("%s", strerror(ENOMEM));
}

static void close_values(struct values *values) {
  if (values->map >= 0)
    close(values->map);
  declarations_free(&values->declared);
  free(values->entry);
}

// Reads the host's own entry, else the default. Returns whether it is the host's own, or -errno.
static int read_entry(struct values *values, __u64 host) {
  if (values->map < 0)
    return 0;
  if (bpf_map_lookup_elem(values->map, &host, values->entry) == 0)
    return 1;
  return bpf_map_lookup_elem(values->map, &default_host, values->entry) ? -errno : 0;
}

static double for_people(const struct declared *member, const void *entry) {
  return (double)declared_kept(member, entry) / member->one;
}

// Returns the largest value that may be set: the declared maximum, or the largest value that the member can hold.
static double most_of(const struct declared *parameter) {
  double held = (parameter->size == 8 ? 9e18 : 4294967295.0) / parameter->one;
  return parameter->most < held ? parameter->most : held;
}

static int unknown_parameter(const struct declarations *known, const char *assignment) {
  fprintf(stderr, "transport: found '%s', expected PARAMETER=VALUE with PARAMETER one of", assignment);
  for (int i = 0; i < known->count; i++)
    fprintf(stderr, " %s", known->members[i].name);
  fputc('\n', stderr);
  return 2;
}

// Returns the value of an assignment, in the unit for people; NAN after printing an error.
static double value_of(const struct declared *parameter, const char *given) {
  char *end;
  double value = strtod(given, &end), most = most_of(parameter);
  if (*parameter->names) {
    int place = declared_place(parameter, given);
    if (place < 0)
      fail("%s: found '%s', expected one of: %s", parameter->name, given, parameter->names);
    return place < 0 ? NAN : place;
  }
  if (end != given && !*end && value >= parameter->least && value <= most)
    return value;
  fail("%s: found '%s', expected a number from %g to %g", parameter->name, given, parameter->least, most);
  return NAN;
}

static int assign(struct values *params, const char *assignment) {
  const char *equals = strchr(assignment, '=');
  const struct declared *parameter =
      equals ? declarations_find(&params->declared, assignment, (size_t)(equals - assignment)) : NULL;
  if (!parameter)
    return unknown_parameter(&params->declared, assignment);
  double value = value_of(parameter, equals + 1);
  if (isnan(value))
    return 2;
  declared_write(parameter, params->entry, value);
  return 0;
}

// Checks a rule. A rule may name a value that only experiments have, and then there is nothing to check here.
static int check_rule(const struct values *params, const struct rule *rule) {
  const struct declared *left = declarations_find(&params->declared, rule->left, strlen(rule->left));
  const struct declared *right = declarations_find(&params->declared, rule->right, strlen(rule->right));
  if (!left || !right)
    return 0;
  double low = for_people(left, params->entry), high = for_people(right, params->entry);
  if (rule->either && !low && !high)
    return fail("%s: found 0, with %s 0, expected one of them", left->name, right->name), 2;
  if (!rule->either && low > high)
    return fail("%s: found %g, with %s %g, expected %s no higher than %s", left->name, low, right->name, high,
                left->name, right->name),
           2;
  return 0;
}

// Writes the host's own entry: its previous values, changed by the assignments.
static int set_own(const char *name, struct values *params, struct values *counters, int count, char **assignments) {
  __u64 host;
  if (params->map < 0)
    return fail("%s has no parameters", name), 2;
  if (this_host(&host))
    return 1;
  if (read_entry(params, host) < 0)
    return fail("%s has no default parameters: %s", name, strerror(errno));
  for (int i = 0; i < count; i++) {
    int status = assign(params, assignments[i]);
    if (status)
      return status;
  }
  for (int i = 0; i < params->declared.rule_count; i++) {
    int status = check_rule(params, &params->declared.rules[i]);
    if (status)
      return status;
  }
  if (counters->map >= 0 && bpf_map_update_elem(counters->map, &host, counters->entry, BPF_NOEXIST) && errno != EEXIST)
    return fail("cannot keep %s's counters: %s", name, strerror(errno));
  if (bpf_map_update_elem(params->map, &host, params->entry, BPF_ANY))
    return fail("cannot set %s's parameters: %s", name, strerror(errno));
  return 0;
}

static int unset_own(const char *name, struct values *params, struct values *counters) {
  __u64 host;
  if (this_host(&host))
    return 1;
  if (params->map >= 0 && bpf_map_delete_elem(params->map, &host) && errno != ENOENT)
    return fail("cannot unset %s's parameters: %s", name, strerror(errno));
  if (counters->map >= 0)
    bpf_map_delete_elem(counters->map, &host);
  return 0;
}

// Returns a counter or parameter of a formula, in the unit for people; NAN if there is none of this name.
static double named(const struct values *params, const struct values *counters, const char *name, size_t length) {
  const struct values *in = counters;
  const struct declared *member = declarations_find(&counters->declared, name, length);
  if (!member) {
    in = params;
    member = declarations_find(&params->declared, name, length);
  }
  return member && member->size ? for_people(member, in->entry) : NAN;
}

// Evaluates a formula such as `a * b / c` from left to right. A division by 0 gives 0.
static double derive(const char *formula, const struct values *params, const struct values *counters) {
  double result = 1;
  char sign = '*';
  for (const char *at = formula; sign; at++) {
    at += strspn(at, " ");
    size_t length = strcspn(at, " */");
    double operand = named(params, counters, at, length);
    result = sign == '*' ? result * operand : operand ? result / operand : 0;
    at += length;
    at += strspn(at, " ");
    sign = *at;
  }
  return result;
}

static void print_derived(double value) {
  if (isnan(value))
    fputs("null", stdout); // a name of the formula does not exist
  else
    printf("%.3f", value);
}

static void print_counters(const struct values *params, const struct values *counters) {
  for (int i = 0; i < counters->declared.count; i++) {
    const struct declared *counter = &counters->declared.members[i];
    printf("%s\"%s\": ", i ? ", " : "", counter->name);
    if (counter->as == DERIVED)
      print_derived(derive(counter->formula, params, counters));
    else if (counter->decimals)
      printf("%.*f", counter->decimals, for_people(counter, counters->entry));
    else
      printf("%llu", declared_kept(counter, counters->entry));
  }
}

// The name of a choice's value, with its length.
static const char *name_at(const struct declared *choice, __u64 place, int *length) {
  const char *at = choice->names;
  for (; place && *at; place--) {
    at += strcspn(at, " ");
    at += strspn(at, " ");
  }
  *length = (int)strcspn(at, " ");
  return at;
}

// A number in the fewest digits that read back as the same one.
static void print_number(double value) {
  char text[32];
  for (int digits = 9; digits <= 17; digits++) {
    snprintf(text, sizeof(text), "%.*g", digits, value);
    if (strtod(text, NULL) == value)
      break;
  }
  fputs(text, stdout);
}

static void print_parameter(const struct declared *parameter, double value) {
  int length;
  const char *name = name_at(parameter, (__u64)value, &length);
  if (*parameter->names)
    printf("\"%.*s\"", length, name);
  else
    print_number(value);
}

static int print_values(const char *name, struct values *params, struct values *counters) {
  __u64 host;
  if (this_host(&host))
    return 1;
  int own = read_entry(params, host);
  if (own < 0 || read_entry(counters, host) < 0)
    return fail("%s has no entry for this host and no default: %s", name, strerror(errno));
  printf("{\"transport\": \"%s\", \"own_entry\": %s, \"params\": {", name, own ? "true" : "false");
  for (int i = 0; i < params->declared.count; i++) {
    const struct declared *parameter = &params->declared.members[i];
    printf("%s\"%s\": ", i ? ", " : "", parameter->name);
    print_parameter(parameter, for_people(parameter, params->entry));
  }
  printf("}, \"counters\": {");
  print_counters(params, counters);
  return puts("}}") < 0;
}

enum task { GET, SET, UNSET };

static int work(enum task task, const char *name, int count, char **assignments) {
  struct values params = {.map = -1}, counters = {.map = -1};
  int status = (task != GET && registry_lock()) || registry_check_loaded(name) ||
               open_values(name, "params", &params) || open_values(name, "counters", &counters);
  if (!status && task == SET)
    status = set_own(name, &params, &counters, count, assignments);
  if (!status && task == UNSET)
    status = unset_own(name, &params, &counters);
  if (!status)
    status = print_values(name, &params, &counters);
  close_values(&params);
  close_values(&counters);
  return status;
}

int values_get(const char *name) { return work(GET, name, 0, NULL); }

int values_set(const char *name, int count, char **assignments) { return work(SET, name, count, assignments); }

int values_unset(const char *name) { return work(UNSET, name, 0, NULL); }
