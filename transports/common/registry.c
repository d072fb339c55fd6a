// SPDX-License-Identifier: Apache-2.0
// Programs and maps are pinned in a bpffs; users and the build are files beside it. Both are under /run, so a reboot
// removes them together with the kernel's registrations.
#include "registry.h"
#include "errors.h"
#include "load_log.h"
#include "object.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define HOME "/run/roundabout"
#define BPFFS HOME "/bpf"
#define PINS BPFFS "/transports"
#define USERS HOME "/transports"
#define BPFFS_MAGIC 0xcafe4a11
#define BUSY_BUILD 3

// Returns true if no character of the name needs an escape in JSON or in a path.
static int is_plain_name(const char *name) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:@+-";
  return *name && *name != '.' && !name[strspn(name, plain)];
}

static void path_of(char path[PATH_MAX], const char *base, const char *name, const char *leaf) {
  snprintf(path, PATH_MAX, leaf ? "%s/%s/%s" : "%s/%s", base, name, leaf);
}

static int is_bpffs(const char *path) {
  struct statfs fs;
  return statfs(path, &fs) == 0 && (unsigned long)fs.f_type == BPFFS_MAGIC;
}

static int mount_bpffs(void) {
  mkdir(BPFFS, 0700);
  if (!is_bpffs(BPFFS) && mount("bpf", BPFFS, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700"))
    return fail("cannot mount a BPF file system at %s: %s; expected root and CONFIG_BPF_SYSCALL", BPFFS,
                strerror(errno));
  mkdir(PINS, 0700);
  mkdir(USERS, 0755);
  return 0;
}

// Undoes mount_bpffs, except for folders and a mount that are still in use.
static void leave_bpffs(void) {
  rmdir(USERS);
  rmdir(PINS);
  DIR *dir = opendir(BPFFS);
  int used = 0;
  for (struct dirent *entry; dir && (entry = readdir(dir));)
    used |= entry->d_type == DT_DIR && entry->d_name[0] != '.'; // the kernel's own maps.debug and progs.debug are files
  if (dir)
    closedir(dir);
  if (is_bpffs(BPFFS) && !used && umount(BPFFS) == 0)
    rmdir(BPFFS);
}

// The lock ends with the process. Mode 0711 lets other users reach files below the folder, but not open the folder,
// because they could then take the lock.
int registry_lock(void) {
  mkdir(HOME, 0711);
  chmod(HOME, 0711);
  int fd = open(HOME, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0 || flock(fd, LOCK_EX))
    return fail("cannot lock %s: %s; expected root", HOME, strerror(errno));
  return 0;
}

static int read_text(const char *path, char *text, size_t size) {
  FILE *file = fopen(path, "re");
  if (!file)
    return -errno;
  size_t length = fread(text, 1, size - 1, file);
  fclose(file);
  text[length] = 0;
  return 0;
}

static int write_text(const char *path, const char *text) {
  FILE *file = fopen(path, "we");
  if (!file)
    return fail("cannot write %s: %s", path, strerror(errno));
  int wrote = fputs(text, file) >= 0;
  return fclose(file) == 0 && wrote ? 0 : fail("cannot write %s: %s", path, strerror(errno));
}

// Arguments of tcp_congestion_ops.cong_control in the running kernel, or 0 without BTF.
static int cong_control_arguments(void) {
  struct btf *btf = btf__load_vmlinux_btf();
  int id = btf ? btf__find_by_name_kind(btf, "tcp_congestion_ops", BTF_KIND_STRUCT) : -1;
  int arguments = 0;
  const struct btf_type *type = id > 0 ? btf__type_by_id(btf, (__u32)id) : NULL;
  for (int i = 0; type && i < btf_vlen(type); i++) {
    const struct btf_member *member = &btf_members(type)[i];
    if (strcmp(btf__name_by_offset(btf, member->name_off), "cong_control") == 0)
      arguments = btf_vlen(btf__type_by_id(btf, btf__type_by_id(btf, member->type)->type));
  }
  btf__free(btf);
  return arguments;
}

// The object file that fits the running kernel: NAME.bpf.o since Linux 6.10, NAME.before_6_10.bpf.o until then.
static int object_path(char path[PATH_MAX], const char *name, const char *objects) {
  char self[PATH_MAX] = "";
  int arguments = cong_control_arguments();
  if (!arguments)
    return fail("this kernel shows no BTF with tcp_congestion_ops (/sys/kernel/btf/vmlinux); expected Linux 6.0 or "
                "later with CONFIG_DEBUG_INFO_BTF and CONFIG_BPF_JIT");
  if (!objects && readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
    return fail("cannot find my own directory: %s", strerror(errno));
  const char *variant = arguments >= 4 ? "" : ".before_6_10";
  if (objects)
    snprintf(path, PATH_MAX, "%s/%s%s.bpf.o", objects, name, variant);
  else
    snprintf(path, PATH_MAX, "%s/../bpf/%s%s.bpf.o", dirname(self), name, variant);
  if (access(path, R_OK))
    return fail("unknown transport '%s': cannot read %s: %s", name, path, strerror(errno));
  return 0;
}

// A file's FNV-1a hash names the build.
static int build_of(const char *path, char build[17]) {
  FILE *file = fopen(path, "re");
  if (!file)
    return fail("cannot read %s: %s", path, strerror(errno));
  __u64 hash = 14695981039346656037ull;
  for (int byte; (byte = fgetc(file)) != EOF;)
    hash = (hash ^ (__u64)byte) * 1099511628211ull;
  fclose(file);
  snprintf(build, 17, "%016llx", hash);
  return 0;
}

// Prints the users' names as the elements of a JSON array, if `out` is given. Returns their number.
static int print_users(FILE *out, const char *name) {
  char path[PATH_MAX];
  int users = 0;
  path_of(path, USERS, name, "users");
  DIR *dir = opendir(path);
  for (struct dirent *entry; dir && (entry = readdir(dir));) {
    if (!is_plain_name(entry->d_name))
      continue;
    if (out)
      fprintf(out, "%s\"%s\"", users ? ", " : "", entry->d_name);
    users++;
  }
  if (dir)
    closedir(dir);
  return users;
}

static int count_users(const char *name) { return print_users(NULL, name); }

static int add_user(const char *name, const char *owner) {
  char path[PATH_MAX], user[PATH_MAX + NAME_MAX];
  path_of(path, USERS, name, "users");
  snprintf(user, sizeof(user), "%s/%s", path, owner);
  if (mkdir(path, 0755) && errno != EEXIST)
    return fail("cannot make %s: %s", path, strerror(errno));
  return write_text(user, "");
}

static int remove_user(const char *name, const char *owner) {
  char path[PATH_MAX];
  snprintf(path, sizeof(path), "%s/%s/users/%s", USERS, name, owner);
  return unlink(path) && errno != ENOENT ? fail("cannot remove %s: %s", path, strerror(errno)) : 0;
}

// Unregisters the program and forgets its pins. Sockets that still use it keep it alive until they close. The build
// goes first and `ops` last: if this is killed, the next load or unload takes out what is left.
static void take_out(const char *name) {
  static const char *const leaves[] = {"params", "counters", "ops"};
  char path[PATH_MAX];
  __u32 zero = 0;
  path_of(path, USERS, name, "build");
  unlink(path);
  path_of(path, PINS, name, "ops");
  int ops = bpf_obj_get(path);
  if (ops >= 0) {
    bpf_map_delete_elem(ops, &zero);
    close(ops);
  }
  for (size_t i = 0; i < sizeof(leaves) / sizeof(leaves[0]); i++) {
    path_of(path, PINS, name, leaves[i]);
    unlink(path);
  }
  path_of(path, PINS, name, NULL);
  rmdir(path);
  path_of(path, USERS, name, "users");
  rmdir(path);
  path_of(path, USERS, name, NULL);
  rmdir(path);
}

static int pin(struct bpf_map *map, const char *name, const char *leaf) {
  char path[PATH_MAX];
  path_of(path, PINS, name, leaf);
  int error = map ? bpf_map__pin(map, path) : 0;
  return error ? fail("cannot pin %s: %s", path, strerror(-error)) : 0;
}

static int attach(struct bpf_map *ops) {
  struct bpf_link *link = bpf_map__attach_struct_ops(ops);
  if (!link)
    return -1;
  bpf_link__disconnect(link);
  bpf_link__destroy(link);
  return 0;
}

// Registers the first congestion control of an object that the kernel accepts. Others may need functions that this
// kernel lacks. Each is pinned before it is registered, so that take_out finds it if this process is killed.
static int register_ops(struct bpf_object *object, const char *name) {
  struct bpf_map *map;
  int error = ENOENT;
  bpf_object__for_each_map(map, object) {
    if (bpf_map__type(map) != BPF_MAP_TYPE_STRUCT_OPS)
      continue;
    if (pin(map, name, "ops"))
      return 1;
    if (!attach(map))
      return 0;
    error = errno;
    bpf_map__unpin(map, NULL);
  }
  return fail("cannot register %s with the kernel: %s\n%s", name,
              error == ENOENT ? "it has no struct tcp_congestion_ops in SEC(\".struct_ops\")" : strerror(error),
              load_log_reasons());
}

// Returns true if the kernel has a congestion control with the name that it must have for transport `name`.
static int is_registered(const char *name) {
  char known[8192], wanted[NAME_MAX];
  snprintf(wanted, sizeof(wanted), "rb_%s", name);
  if (read_text("/proc/sys/net/ipv4/tcp_available_congestion_control", known, sizeof(known)))
    return 0;
  for (char *rest = known, *word; (word = strtok_r(rest, " \n", &rest));)
    if (strcmp(word, wanted) == 0)
      return 1;
  return 0;
}

static int register_object(struct bpf_object *object, const char *name) {
  if (object_write_defaults(object))
    return 1;
  if (register_ops(object, name) || pin(bpf_object__find_map_by_name(object, "params"), name, "params") ||
      pin(bpf_object__find_map_by_name(object, "counters"), name, "counters"))
    return 1;
  return is_registered(name)
             ? 0
             : fail("%s calls itself something else in the kernel, expected .name = \"rb_%s\"", name, name);
}

static int put_in(const char *name, const char *path, const char *build) {
  char directory[PATH_MAX];
  load_log_start();
  struct bpf_object *object = bpf_object__open_file(path, NULL);
  if (!object || bpf_object__load(object)) {
    int error = errno;
    const char *reasons = load_log_reasons(); // most often from the verifier
    bpf_object__close(object);
    if (strstr(reasons, "(func ksym)"))
      return fail("%s calls a function that this kernel does not offer to eBPF; expected Linux 6.0 or later, with the "
                  "congestion control that it builds on\n%s",
                  path, reasons);
    return fail("the kernel does not take %s: %s%s\n%s", path, strerror(error),
                *reasons ? "" : "; expected root and Linux 6.0 or later", reasons);
  }
  path_of(directory, PINS, name, NULL);
  mkdir(directory, 0700);
  path_of(directory, USERS, name, NULL);
  mkdir(directory, 0755);
  int status = register_object(object, name);
  bpf_object__close(object);
  path_of(directory, USERS, name, "build");
  if (status || write_text(directory, build)) {
    take_out(name);
    return 1;
  }
  return 0;
}

static int is_loaded(const char *name) {
  char path[PATH_MAX];
  path_of(path, PINS, name, "ops");
  return access(path, F_OK) == 0;
}

static int print_one(const char *name) {
  char path[PATH_MAX], build[17] = "";
  path_of(path, USERS, name, "build");
  read_text(path, build, sizeof(build));
  printf("{\"transport\": \"%s\", \"kernel_name\": \"rb_%s\", \"build\": \"%s\", \"users\": [", name, name, build);
  print_users(stdout, name);
  return fputs("]}", stdout) < 0;
}

// Removes another build of the transport if it has no users; refuses if it has some.
static int make_room(const char *name, const char *build) {
  char path[PATH_MAX], found[17] = "";
  path_of(path, USERS, name, "build");
  read_text(path, found, sizeof(found));
  if (strcmp(found, build) == 0)
    return 0;
  if (count_users(name)) {
    fprintf(stderr, "transport: %s: found build %s in use by ", name, found);
    print_users(stderr, name);
    fprintf(stderr, ", expected build %s; let them finish, or run roundabout clean\n", build);
    return BUSY_BUILD;
  }
  take_out(name);
  return 0;
}

static int refuse_names(const char *name, const char *owner) {
  if (is_plain_name(name) && is_plain_name(owner))
    return 0;
  return fail("found name '%s' and owner '%s', expected names of letters, digits and ._:@+- that begin with no dot",
              name, owner),
         2;
}

int registry_load(const char *name, const char *owner, const char *objects) {
  char path[PATH_MAX], build[17];
  if (refuse_names(name, owner))
    return 2;
  if (registry_lock() || object_path(path, name, objects) || build_of(path, build) || mount_bpffs())
    return 1;
  if (is_loaded(name)) {
    int status = make_room(name, build);
    if (status)
      return status;
  }
  if ((!is_loaded(name) && put_in(name, path, build)) || add_user(name, owner)) {
    if (!count_users(name))
      take_out(name);
    leave_bpffs();
    return 1;
  }
  return print_one(name) || puts("") < 0;
}

int registry_unload(const char *name, const char *owner) {
  if (refuse_names(name, owner))
    return 2;
  if (registry_lock() || remove_user(name, owner))
    return 1;
  int left = count_users(name);
  if (!left)
    take_out(name);
  printf("{\"transport\": \"%s\", \"loaded\": %s, \"users\": [", name, left ? "true" : "false");
  print_users(stdout, name);
  leave_bpffs();
  return puts("]}") < 0;
}

int registry_list(void) {
  int count = 0;
  DIR *dir = opendir(PINS);
  printf("[");
  for (struct dirent *entry; dir && (entry = readdir(dir));) {
    if (!is_plain_name(entry->d_name))
      continue;
    printf("%s", count++ ? ", " : "");
    print_one(entry->d_name);
  }
  if (dir)
    closedir(dir);
  return puts("]") < 0;
}

int registry_check_loaded(const char *name) {
  if (is_plain_name(name) && is_loaded(name))
    return 0;
  return fail("transport '%s' is not loaded on this machine; load it with: transport load %s --owner OWNER", name,
              name);
}

int registry_map(const char *name, const char *which) {
  char path[PATH_MAX];
  path_of(path, PINS, name, which);
  return bpf_obj_get(path);
}
