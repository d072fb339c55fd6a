// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The common part of all variants of MLTCP: the job of a socket, the job's count of bytes, and F.
//
// A job is all sockets of a host, all sockets of a cgroup, or one socket; the sockets of a job share a count and a
// lock. A job ends when its last socket closes; later sockets are a new job. State is in socket-local storage, because
// the base transport uses the private area.
#ifndef ROUNDABOUT_MLTCP_JOB_H
#define ROUNDABOUT_MLTCP_JOB_H

#include "aggressiveness.h"
#include "transport.h"
#include <bpf/bpf_core_read.h>

struct bpf_spin_lock {
  __u32 val;
};

struct job_key {
  __u64 id;
  __u64 count_by;
};

struct job {
  struct bpf_spin_lock lock;
  __u32 members;
  __u64 begun_ns; // distinguishes the job from earlier ones with the same key
  struct iteration iteration;
};

struct member {
  struct job_key job;
  __u64 job_begun_ns;
  struct iteration alone; // used if the job is this socket, or the map of jobs is full
  __u64 bytes_acked;
  __u32 F_q24;
  __u32 carried_q24;
};

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 4096);
  __type(key, struct job_key);
  __type(value, struct job);
} jobs SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_SK_STORAGE);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, int);
  __type(value, struct member);
} members SEC(".maps");

// Returns the id of a socket's cgroup; 0 for kernels without cgroups, where all sockets of a host are one job.
static __always_inline __u64 cgroup_of(struct sock *sk) {
  if (!bpf_core_field_exists(sk->sk_cgrp_data.cgroup))
    return 0;
  return sk->sk_cgrp_data.cgroup->kn->id;
}

// Returns the key of the job to which a new socket belongs.
static __always_inline struct job_key job_key_of(struct sock *sk, const struct mltcp_params *p) {
  __u64 cgroup = p->count_by == CGROUP ? cgroup_of(sk) : 0;
  struct job_key key = {.id = cgroup ? cgroup : host_of(sk), .count_by = cgroup ? CGROUP : p->count_by};
  return key;
}

// Returns a socket's state; NULL if there was no memory, in which case the socket behaves like its base transport.
static __always_inline struct member *member_of(struct sock *sk) { return bpf_sk_storage_get(&members, sk, NULL, 0); }

// Returns the job that a socket shares with others; NULL if the socket is a job by itself, or if the job was deleted
// while the socket joined.
static __always_inline struct job *job_of(const struct member *m) {
  struct job *job = m->job.count_by != SOCKET ? bpf_map_lookup_elem(&jobs, &m->job) : NULL;
  return job && job->begun_ns == m->job_begun_ns ? job : NULL;
}

// A job without members. It is not on the stack, of which a program has 512 bytes with all that it calls.
static const char EMPTY_JOB[sizeof(struct job)];

// Adds a socket to the job of its key, which begins if there is none. Returns NULL if the map is full.
static __always_inline struct job *job_enter(struct member *m) {
  __u64 now_ns = bpf_ktime_get_ns();
  bpf_map_update_elem(&jobs, &m->job, EMPTY_JOB, BPF_NOEXIST);
  struct job *job = bpf_map_lookup_elem(&jobs, &m->job);
  if (!job)
    return NULL;
  bpf_spin_lock(&job->lock);
  if (!job->begun_ns)
    job->begun_ns = now_ns;
  job->members++;
  m->job_begun_ns = job->begun_ns;
  bpf_spin_unlock(&job->lock);
  return job;
}

// Adds a new socket to its job.
static __always_inline void job_join(struct sock *sk, const struct mltcp_params *p) {
  struct member *m = bpf_sk_storage_get(&members, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
  if (!m || !p)
    return;
  __builtin_memset(m, 0, sizeof(*m));
  m->job = job_key_of(sk, p);
  m->bytes_acked = tcp_of(sk)->bytes_acked;
  m->F_q24 = ONE_Q24;
  if (m->job.count_by != SOCKET)
    job_enter(m);
}

// Removes a closing socket from its job, which ends with its last socket.
static __always_inline void job_leave(struct sock *sk) {
  struct member *m = member_of(sk);
  struct job *job = m ? job_of(m) : NULL;
  if (!job)
    return;
  bpf_spin_lock(&job->lock);
  // Another job may have got the element since job_of().
  __u32 left = job->begun_ns == m->job_begun_ns ? --job->members : 1;
  bpf_spin_unlock(&job->lock);
  if (!left)
    bpf_map_delete_elem(&jobs, &m->job);
}

// Copies the state of a job to the counters.
static __always_inline void job_show(const struct iteration *it, const struct mltcp_params *p, __u32 F_q24,
                                     struct mltcp_counters *c) {
  c->iterations = it->ended;
  c->learned_bytes = it->learned_bytes;
  c->learned_silence_us = it->silence_us;
  c->sent_bytes = it->sent;
  c->bytes_ratio_q24 = iteration_ratio_q24(it, p);
  c->aggressiveness_q24 = F_q24;
}

// Counts `bytes` in a job's iteration, and updates the socket's F and the counters.
static __always_inline void job_count(struct iteration *it, struct member *m, const struct mltcp_params *p,
                                      __u64 now_us, __u64 bytes, struct mltcp_counters *c) {
  iteration_on_ack(it, p, now_us, bytes);
  m->F_q24 = aggressiveness_of(it, p);
  job_show(it, p, m->F_q24, c);
}

// Counts the bytes that an ACK acknowledged, and updates F for later increases.
static __always_inline void job_on_ack(struct sock *sk, const struct mltcp_params *p, struct mltcp_counters *c) {
  struct member *m = member_of(sk);
  if (!m)
    return;
  __u64 now_us = tcp_of(sk)->tcp_mstamp, bytes = tcp_of(sk)->bytes_acked - m->bytes_acked;
  if (!bytes)
    return;
  m->bytes_acked += bytes;

  struct job *job = job_of(m);
  if (!job && m->job.count_by != SOCKET)
    job = job_enter(m);
  if (!job) {
    job_count(&m->alone, m, p, now_us, bytes, c);
    return;
  }
  bpf_spin_lock(&job->lock);
  job_count(&job->iteration, m, p, now_us, bytes, c);
  bpf_spin_unlock(&job->lock);
}

#endif
