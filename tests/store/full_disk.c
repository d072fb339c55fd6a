// SPDX-License-Identifier: Apache-2.0
// A disk that is full, for a program that this is loaded into before libc: of the calls that take room under a folder,
// number `at` fails with ENOSPC, and so do all after it where `stays` is set.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char under[PATH_MAX];
static int counted, at, stays;

void full_disk(const char *folder, int number, int from_then_on) {
  snprintf(under, sizeof(under), "%s", folder);
  counted = 0, at = number, stays = from_then_on;
}

int full_disk_counted(void) { return counted; }

static int is_full(const char *path) {
  if (!*under || strncmp(path, under, strlen(under)) != 0)
    return 0;
  counted++;
  int full = at > 0 && (stays ? counted >= at : counted == at);
  if (full)
    errno = ENOSPC;
  return full;
}

static int is_full_behind(int fd) {
  char link[64], path[PATH_MAX] = "";
  snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  return *under && readlink(link, path, sizeof(path) - 1) > 0 && is_full(path);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *bytes, size_t size) { return is_full_behind(fd) ? -1 : REAL(write)(fd, bytes, size); }

int fsync(int fd) { return is_full_behind(fd) ? -1 : REAL(fsync)(fd); }

int mkdir(const char *path, mode_t mode) { return is_full(path) ? -1 : REAL(mkdir)(path, mode); }

int rename(const char *from, const char *to) { return is_full(to) ? -1 : REAL(rename)(from, to); }

static int mode_of(int flags, va_list rest) { return flags & O_CREAT ? (int)va_arg(rest, mode_t) : 0; }

#define OPEN(name)                                                                                                     \
  int name(const char *path, int flags, ...) {                                                                         \
    va_list rest;                                                                                                      \
    va_start(rest, flags);                                                                                             \
    int mode = mode_of(flags, rest);                                                                                   \
    va_end(rest);                                                                                                      \
    return flags & O_CREAT && is_full(path) ? -1 : REAL(name)(path, flags, mode);                                      \
  }
OPEN(open)
OPEN(open64)
