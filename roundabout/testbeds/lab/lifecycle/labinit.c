// SPDX-License-Identifier: Apache-2.0
// labinit: the process that keeps a lab host, or a lab switch, in existence.
//
//   labinit host NAME LOCK_FD SHARE BPF [SHIFT_NS]
//       new network, mount, PID, UTS and IPC namespaces, with labinit as their PID 1; and a time namespace, whose
//       monotonic clock (and time since boot) is SHIFT_NS ahead of the machine's, if SHIFT_NS is given
//   labinit switch NAME LOCK_FD
//       new network and mount namespaces, with a /sys that shows its devices
//
// LOCK_FD is the node's pid file, open and flock-held by the caller. labinit writes its pid there and keeps the
// descriptor. The pid is valid while the lock is held; once the lock is free, no process of the node is left. Returns 0
// when the node is ready, and 1 with a message if it could not be made. When labinit dies, the kernel ends the node.
//
// SHARE is the lab's folder of files for hosts: bound to /run/roundabout/ssh, and its etc/ over files of /etc.
// BPF is the lab's bpffs, bound to the same path inside.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHARE_INSIDE "/run/roundabout/ssh"
#define NOT_FOR_PROGRAMS (MS_NOSUID | MS_NODEV | MS_NOEXEC)

struct node {
  int is_host;
  const char *name;
  int lock;
  const char *share;
  const char *bpf;
  const char *shift_ns; // NULL: the machine's clock
};

static _Noreturn void die(const struct node *node, const char *what) {
  fprintf(stderr, "labinit %s: %s: %s\n", node->name, what, strerror(errno));
  _exit(1);
}

static void make_folder(const struct node *node, const char *path, mode_t mode) {
  if (mkdir(path, mode) && errno != EEXIST)
    die(node, path);
  chmod(path, mode); // whatever the umask was
}

static void write_once(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);

  // The file does not exist on a kernel without IPv6, which needs no setting.
  if (fd < 0)
    return;
  if (write(fd, text, strlen(text)) < 0)
    fprintf(stderr, "labinit: %s: %s\n", path, strerror(errno));
  close(fd);
}

// Writes the pid in the machine's PID namespace. /proc is still the machine's here, so `self` is not yet 1.
static void write_pid(const struct node *node) {
  char pid[32];
  ssize_t length = readlink("/proc/self", pid, sizeof(pid) - 1);

  if (length < 0)
    die(node, "/proc/self");
  pid[length++] = '\n';
  if (ftruncate(node->lock, 0) || pwrite(node->lock, pid, length, 0) != length)
    die(node, "writing the pid file");
}

static void prepare_network(const struct node *node) {
  struct ifreq loopback = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

  // Set before any device exists, so that later devices have no IPv6 and send no neighbor discovery.
  write_once("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
  write_once("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
  if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &loopback))
    die(node, "bringing lo up");
  close(fd);
}

// Opens a handle to `path` that stays valid when something is mounted over it.
static int keep(const struct node *node, const char *path) {
  int fd = open(path, O_PATH | O_CLOEXEC);

  if (fd < 0)
    die(node, path);
  return fd;
}

static void bind_over(const struct node *node, int source, const char *target) {
  char path[64];

  snprintf(path, sizeof(path), "/proc/self/fd/%d", source);
  if (mount(path, target, NULL, MS_BIND | MS_REC, NULL))
    die(node, target);
  close(source);
}

static void mount_fresh(const struct node *node, const char *type, const char *target, unsigned long flags,
                        const char *options) {
  if (mount(type, target, type, flags, options))
    die(node, target);
}

static void cover_etc(const struct node *node) {
  static const char *const files[] = {"hosts", "passwd", "shadow"};
  char source[4096], target[64];

  for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
    snprintf(source, sizeof(source), "%s/etc/%s", node->share, files[i]);
    snprintf(target, sizeof(target), "/etc/%s", files[i]);
    bind_over(node, keep(node, source), target);
  }
}

// Do not record logins to lab hosts in the machine's wtmp, btmp and lastlog.
static void hide_login_records(void) {
  static const char *const records[] = {"/var/log/wtmp", "/var/log/btmp", "/var/log/lastlog"};

  for (size_t i = 0; i < sizeof(records) / sizeof(*records); i++)
    mount("/dev/null", records[i], NULL, MS_BIND, NULL); // fails for files that the system does not have
}

// Unmounts on the machine propagate here, so the lab never keeps a disk busy. The lab's do not propagate back.
static void detach_mounts(const struct node *node) {
  if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL))
    die(node, "making mounts private");
}

static void prepare_mounts(const struct node *node) {
  int share, bpf;

  cover_etc(node);
  hide_login_records();
  share = keep(node, node->share);
  bpf = keep(node, node->bpf);
  mount_fresh(node, "tmpfs", "/tmp", MS_NOSUID | MS_NODEV, "mode=1777");
  mount_fresh(node, "tmpfs", "/dev/shm", MS_NOSUID | MS_NODEV, "mode=1777");
  mount_fresh(node, "tmpfs", "/run", MS_NOSUID | MS_NODEV, "mode=755");
  make_folder(node, "/run/sshd", 0755);
  make_folder(node, "/run/roundabout", 0755);
  make_folder(node, SHARE_INSIDE, 0755);
  make_folder(node, node->bpf, 0700);
  bind_over(node, share, SHARE_INSIDE);
  bind_over(node, bpf, node->bpf);
  mount_fresh(node, "proc", "/proc", NOT_FOR_PROGRAMS, NULL);
}

static void let_go_of_caller(const struct node *node) {
  int null = open("/dev/null", O_RDWR);

  if (null < 0 || chdir("/"))
    die(node, "/dev/null");
  for (int fd = 0; fd <= 2; fd++)
    dup2(null, fd);
  if (null > 2)
    close(null);
}

static _Noreturn void reap_until_terminated(const sigset_t *awaited) {
  int signal;

  while (!sigwait(awaited, &signal) && signal != SIGTERM)
    while (waitpid(-1, NULL, WNOHANG) > 0)
      ;
  _exit(0);
}

static _Noreturn void live(const struct node *node, int ready) {
  sigset_t awaited;

  sigemptyset(&awaited);
  sigaddset(&awaited, SIGCHLD);
  sigaddset(&awaited, SIGTERM);
  sigprocmask(SIG_BLOCK, &awaited, NULL);
  umask(022);
  write_pid(node);
  prepare_network(node);
  detach_mounts(node);
  if (node->is_host) {
    if (sethostname(node->name, strlen(node->name)))
      die(node, "setting the host name");
    prepare_mounts(node);
  }
  mount_fresh(node, "sysfs", "/sys", NOT_FOR_PROGRAMS, NULL);
  let_go_of_caller(node);
  if (write(ready, "", 1) != 1)
    _exit(1);
  close(ready);
  reap_until_terminated(&awaited);
}

// Offsets are fixed once a process is in the time namespace, so they are set here.
static void shift_clocks(const struct node *node) {
  const long long second = 1000000000, shift = atoll(node->shift_ns);
  const long long rest = (shift % second + second) % second; // nonnegative, also for a negative shift
  const long long seconds = (shift - rest) / second;
  FILE *offsets;

  if (unshare(CLONE_NEWTIME))
    die(node, "making a time namespace");
  offsets = fopen("/proc/self/timens_offsets", "we");
  if (!offsets)
    die(node, "/proc/self/timens_offsets");
  fprintf(offsets, "monotonic %lld %lld\nboottime %lld %lld\n", seconds, rest, seconds, rest);
  if (fclose(offsets))
    die(node, errno == ERANGE ? "shifting its clock to before the machine's boot" : "shifting its clock");
}

static int start(const struct node *node) {
  const int host_only = CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC;
  int ready[2];
  char byte;
  pid_t child;

  setsid();
  if (unshare(CLONE_NEWNET | CLONE_NEWNS | (node->is_host ? host_only : 0)))
    die(node, "making namespaces");
  if (node->shift_ns)
    shift_clocks(node);
  if (pipe2(ready, O_CLOEXEC) || (child = fork()) < 0)
    die(node, "starting");
  if (!child) {
    close(ready[0]);
    live(node, ready[1]);
  }
  close(ready[1]);
  return read(ready[0], &byte, 1) == 1 ? 0 : 1;
}

int main(int count, char **words) {
  struct node node = {0};

  if ((count == 6 || count == 7) && !strcmp(words[1], "host"))
    node = (struct node){.is_host = 1,
                         .name = words[2],
                         .lock = atoi(words[3]),
                         .share = words[4],
                         .bpf = words[5],
                         .shift_ns = words[6]}; // argv ends with NULL
  else if (count == 4 && !strcmp(words[1], "switch"))
    node = (struct node){.name = words[2], .lock = atoi(words[3])};
  else {
    fprintf(stderr, "usage: labinit host NAME LOCK_FD SHARE BPF [SHIFT_NS] | labinit switch NAME LOCK_FD\n");
    return 2;
  }
  return start(&node);
}
