// SPDX-License-Identifier: Apache-2.0
// labenter PID_FILE PROGRAM [ARGUMENT...]: run a program inside a lab host. It is the ProxyCommand of the lab's
// ssh_config. The host lives while labinit holds the lock on PID_FILE; only then is the pid in it believed.
// The program gets no capabilities for modules, raw devices, the machine's clock and its power.
#define _GNU_SOURCE
#include "capabilities.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static _Noreturn void die(const char *what, const char *why) {
  fprintf(stderr, "labenter: %s: %s\n", what, why);
  exit(1);
}

static int is_alive(int pid_file) { return flock(pid_file, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK; }

static int open_host(const char *path) {
  int file = open(path, O_RDONLY | O_CLOEXEC), host;
  char pid[32] = "";

  if (file < 0)
    die(path, errno == ENOENT ? "no such lab host; `roundabout lab status` lists them" : strerror(errno));
  if (read(file, pid, sizeof(pid) - 1) < 0)
    die(path, strerror(errno));
  host = (int)syscall(SYS_pidfd_open, atoi(pid), 0);
  // The lock is checked after the pidfd is open, so that a reused pid cannot be mistaken for the host.
  if (!is_alive(file) || host < 0)
    die(path, "this lab host is not running; `roundabout lab down` clears what is left of its lab");
  close(file);
  return host;
}

// Returns the flag for a time namespace, or 0 for kernels without such namespaces, whose setns() would fail.
static int time_namespace(void) { return access("/proc/self/ns/time", F_OK) ? 0 : CLONE_NEWTIME; }

int main(int count, char **words) {
  int host, status;
  pid_t child;

  if (count < 3) {
    fprintf(stderr, "usage: labenter PID_FILE PROGRAM [ARGUMENT...]\n");
    return 2;
  }
  host = open_host(words[1]);
  if (setns(host, CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC | time_namespace()))
    die(words[1], strerror(errno));
  close(host);
  // setns() moves only children into the PID namespace.
  child = fork();
  if (child < 0)
    die("fork", strerror(errno));
  if (!child) {
    if (chdir("/"))
      die("/", strerror(errno));
    if (drop_unneeded_capabilities())
      die("giving up capabilities", strerror(errno));
    execvp(words[2], words + 2);
    die(words[2], strerror(errno));
  }
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR)
      die("waitpid", strerror(errno));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
