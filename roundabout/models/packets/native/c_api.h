/* SPDX-License-Identifier: Apache-2.0 */
/* The C API of the packet-level engine. Its C++ includes this file, and Python reads it with cffi, which reads neither
 * macros nor includes (roundabout/models/native_engine.py).
 * Names end with units where they have any: ps, bytes, _q24 for units of 2^-24. Fields that are yes or no are 1 or 0.
 * Instants of jobs, iterations, samples, links and routes count from the lead's end, all others from the beginning of
 * cross traffic.
 */
#ifndef ROUNDABOUT_PACKETS_C_API_H
#define ROUNDABOUT_PACKETS_C_API_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- plans ------------------------------------------------------------------------------------------------------- */

/* The NICs of all hosts, and the seed of everything that the engine draws. */
struct nic_plan {
  int64_t payload_bytes; /* of a full packet */
  int64_t header_bytes;  /* of a frame beside its payload, as interfaces count it */
  int64_t control_bytes; /* of an ACK's, NACK's or CNP's frame, as interfaces count it */
  int64_t around_bytes;  /* of a link's time around each frame: preamble and gap */
  int64_t ack_bytes;     /* between two acknowledgements of a message */
  int64_t burst_packets; /* that the rate limiter releases at once */
  double pace_jitter;    /* width of the uniform spread of a burst's time, as a share of it */
  int64_t cnp_delay_ps;  /* in both NICs together, beside the links' time */
  int64_t cnp_jitter_ps; /* width of the uniform spread that is added to it */
  int64_t timeout_ps;    /* after which an unacknowledged message is sent again */
  uint64_t seed;
};

/* One direction of a link and the port that feeds it. The two directions of a link are neighbors, from an even one. A
 * size below 0 means that there is no such limit; without xoff_bytes there is no PFC. */
struct port_plan {
  double payload_bytes_per_s; /* of data */
  double line_bytes_per_s;    /* of ACKs, CNPs and pause frames */
  int64_t delay_ps;           /* from the last bit sent to the packet's arrival in the next node's queue */
  int64_t queue_bytes;        /* of each priority; a data packet that does not fit is dropped */
  int64_t kmin_bytes, kmax_bytes;
  double pmax;
  int64_t xoff_bytes, xon_bytes, buffer_bytes; /* of what came over this link and waits in the switch at its end */
  int64_t host;                                /* that sends into it, or -1 for a switch */
  int64_t marks_on_arrival;                    /* by the queue that a packet finds, and not by the one that it leaves */
  double loss;                                 /* share of data and ACKs that a switch's port drops at random */
  int64_t trims;                               /* a data packet that finds no room loses its payload alone */
  int64_t from_switch, to_switch;              /* at its ends, counted from 0, or -1 for a host */
};

/* The state of both directions of a link from an instant on. A link that is not up loses all packets. */
struct link_plan {
  int64_t at_ps;
  double payload_bytes_per_s, line_bytes_per_s;
  double loss; /* share of all frames that it loses at random */
  int64_t is_up;
};

/* The packet memory that a switch's ports share. */
struct buffer_plan {
  int64_t shared_bytes;     /* of the memory, without what is reserved as headroom */
  int64_t xon_offset_bytes; /* a link goes on when it holds that much less than its threshold */
  double alpha;             /* a queue, or what came over a link, may hold alpha times the free bytes */
  int64_t is_lossless;
};

enum { FIXED_ROUTES, SPRAY, FLOWLET, ADAPTIVE, BITMAP, REPS };

/* How packets find their paths. Without fixed routes, switches choose among the next hops on shortest paths: by a hash
 * of the entropy that a sender draws for each packet or flowlet, or chooses by marks and losses, or by the shortest
 * queue. */
struct routing_plan {
  uint32_t policy;
  uint32_t entropies; /* of a flow, by BITMAP and REPS: a power of two up to 65,536 */
  int64_t gap_ps;     /* of a flowlet: after a longer silence the sender draws another entropy */
};

enum { CNP_PER_QP, CNP_PER_HOST, CNP_PER_PORT };
enum { GO_BACK_N, SELECTIVE_REPEAT };

/* DCQCN's parameters of a queue pair in the units of transports/dcqcn/dcqcn_params.h, but times in ps. */
struct reaction_plan {
  int64_t T_ps, alpha_timer_ps, cnp_gap_ps;
  uint64_t byte_counter_bytes, R_AI, R_HAI, R_min, R_max;
  uint32_t F, g_q24, clamp_target, clamp_target_after_timer, hyper_by_stage, alpha_by_timer, alpha_initial_q24;
  uint64_t rate_on_first_cnp;
  uint32_t cnp_scope, retransmission; /* of the NIC, and none of the reaction point's */
};

/* MLTCP's parameters in the units of transports/mltcp/mltcp_params.h. */
struct mltcp_plan {
  uint64_t iteration_bytes;
  uint32_t gap_us, slope_q24, intercept_q24, learn_q24, shape, acts_on;
};

enum { ALGORITHM_RENO, ALGORITHM_CUBIC, ALGORITHM_DCTCP, ALGORITHMS };

struct congestion_plan {
  uint32_t algorithm;
  uint32_t hystart; /* 1: CUBIC leaves slow start early */
  uint32_t g_q24;   /* of DCTCP, as in transports/dctcp/dctcp_params.h */
};

struct tcp_plan {
  int64_t mss_bytes, header_bytes; /* a full segment's payload, and what a frame is longer, as interfaces count it */
  int64_t tso_bytes;               /* payload that segmentation offload sends at once, at most */
  int64_t write_bytes;             /* that the program writes at once */
  int64_t window_bytes;            /* under way, at most */
  int64_t first_window_bytes, grown_window_bytes; /* the receiver's: while it grows, each segment is acknowledged */
  int64_t initial_window;                         /* segments */
  int64_t rto_min_ps, rto_initial_ps;
  int64_t delayed_ack_ps; /* how long a receiver may wait */
  int64_t ack_segments;   /* that it acknowledges together; 1: no delay */
  int64_t jitter_ps;      /* width of the even spread of the time that the host takes to send what an ACK allows */
  int64_t is_ecn, has_tail_loss_probe, restarts_after_idle, is_paced;
  struct congestion_plan congestion;
};

enum { WINDOW_SWIFT, WINDOW_NSCC };

/* Swift's parameters in the units of transports/swift/swift_params.h, but times in ns. */
struct swift_plan {
  uint32_t base_target_ns, hop_ns, fs_range_ns, fs_min_cwnd_q24, fs_max_cwnd_q24, ai_q24, beta_q24, max_mdf_q24;
  uint32_t min_cwnd_q24, max_cwnd, initial_cwnd, retx_reset;
};

/* NSCC's in those of transports/nscc/nscc_params.h, but times in ns. */
struct nscc_plan {
  uint64_t line;
  uint32_t network_rtt_ns, target_ns, qa_gate, gamma_q24, initial_cwnd;
};

/* A flow with a window, and the parameters of its algorithm. */
struct window_plan {
  uint32_t algorithm;
  uint32_t reordering; /* packets sent later that arrive before one counts as lost, 0: 1.5 windows */
  int64_t rto_min_ps;
  struct swift_plan swift;
  struct nscc_plan nscc;
};

/* A job without phases. Its iterations may begin by a timetable (roundabout/spec/cassini.py), if it has a period. */
struct job_plan {
  int64_t workers, iterations;
  int64_t begins_ps, departs_ps; /* departs below 0: never */
  int64_t shift_ps, period_ps, threshold_ps, late_ps;
};

/* A flow of cross traffic. */
struct flow_plan {
  int64_t at_ps; /* its start */
  int64_t bytes; /* of payload */
  int64_t pool;  /* of its traffic's pools */
};

/* Streams share a rate, as iperf's do. While less than min_share of it arrives, one more is tried, from the beginning.
 */
struct stream_plan {
  double bytes_per_s, min_share;
  int64_t streams, max_streams;
  int64_t write_bytes;       /* that each may have yet to write */
  int64_t step_ps, probe_ps; /* rates are compared at each step, but not before probe_ps */
};

/* --- results ----------------------------------------------------------------------------------------------------- */

/* An iteration of one worker: three instants, and how long a timetable delayed its begin. */
struct iteration_record {
  int64_t start_ps, compute_end_ps, end_ps, delay_ps;
};

/* A flow got its connection; its receiver had all. Below 0: not yet. */
struct flow_record {
  int64_t start_ps, end_ps;
};

/* The packets of a queue pair, and the counters and the state of its reaction point. */
struct pair_result {
  int64_t packets, resent, delivered, marked, acked;
  uint64_t cnps, fast_increases, additive_increases, hyper_increases;
  uint64_t rate_bytes_per_s, alpha_q24;
};

/* The counters of a TCP connection and its present state. Windows are in segments. */
struct connection_result {
  int64_t timeouts, probes, recoveries, reductions_by_marks, acks, lost;
  int64_t in_flight, cwnd, ssthresh, srtt_ps, min_rtt_ps;
  uint64_t iterations, iteration_bytes; /* of MLTCP */
  uint32_t alpha_q24, F_q24;
};

/* The counters of a flow with a window and its present state. */
struct window_result {
  int64_t cwnd_bytes, srtt_ps, timeouts;
  uint64_t increases, decreases, quick_adapts; /* of ACKs; the last of NSCC alone */
  uint64_t iterations, iteration_bytes;        /* of MLTCP */
  uint32_t F_q24;
};

/* The counters of a cross traffic. */
struct traffic_result {
  int64_t delivered; /* bytes in order, to all receivers */
  int64_t packets, resent, arrived, marked;
  int64_t connections; /* made so far */
  int64_t streams;     /* of the present try */
};

/* A sample is a row of integers: a port_sample of each port, a host_sample of each host, a queue_sample of each sampled
 * queue, a buffer_sample of each shared buffer, and each counter of marks. Counters are cumulative. */
struct port_sample {
  int64_t tx_bytes, tx_packets, backlog_bytes, drops, marks;
  int64_t pauses; /* pause frames that it obeyed */
  int64_t paused_ps;
};

struct host_sample {
  int64_t marked, cnps_sent, cnps_handled, out_of_sequence;
};

struct queue_sample {
  int64_t tx_bytes, tx_packets, backlog_bytes, drops, marks, pauses, paused_ps;
  int64_t average_bytes; /* of RED */
};

struct buffer_sample {
  int64_t shared_bytes, headroom_bytes; /* in use */
  int64_t most_bytes;                   /* that both together have held */
};

/* --- functions --------------------------------------------------------------------------------------------------- */

struct simulation;

/* Jobs and samples begin lead_ps after cross traffic. */
struct simulation *packets_create(const struct nic_plan *nic, const struct port_plan *ports, size_t count, size_t hosts,
                                  int64_t sample_ps, int64_t lead_ps);
void packets_free(struct simulation *simulation);

/* headroom_bytes are those of the link in the opposite direction of each port. */
void packets_share_buffer(struct simulation *simulation, const struct buffer_plan *plan, const uint32_t *ports,
                          const int64_t *headroom_bytes, size_t count);
void packets_weigh_queues(struct simulation *simulation, uint32_t port, const int64_t *quanta_bytes, size_t count);
void packets_use_red(struct simulation *simulation, uint32_t port, double weight);
void packets_sample_queues(struct simulation *simulation, int queues); /* a bit for each */
void packets_change_link(struct simulation *simulation, uint32_t port, const struct link_plan *plan);
/* From an instant on, switches that choose next hops avoid these ports, and no others. */
void packets_avoid_links(struct simulation *simulation, int64_t at_ps, const uint32_t *ports, size_t count);

/* Before queue pairs are added. */
void packets_set_routing(struct simulation *simulation, const struct routing_plan *plan);

/* Routes are ports there and back; both are empty within a host. Without fixed routes they are the ports by which each
 * of the two hosts sends, one for each plane. */
uint32_t packets_add_pair(struct simulation *simulation, const uint32_t *out, size_t hops, const uint32_t *back,
                          size_t back_hops, int priority, uint32_t from_host, uint32_t to_host,
                          const struct reaction_plan *plan);
uint32_t packets_add_connection(struct simulation *simulation, const uint32_t *out, size_t hops, const uint32_t *back,
                                size_t back_hops, int priority, uint32_t from_host, uint32_t to_host,
                                const struct tcp_plan *plan);
uint32_t packets_add_window_flow(struct simulation *simulation, const uint32_t *out, size_t hops, const uint32_t *back,
                                 size_t back_hops, int priority, uint32_t from_host, uint32_t to_host,
                                 const struct window_plan *plan);
/* From an instant on, a queue pair and those that are added like it take these routes. */
void packets_change_route(struct simulation *simulation, uint32_t pair, int64_t at_ps, const uint32_t *out, size_t hops,
                          const uint32_t *back, size_t back_hops);
uint32_t packets_add_mltcp_job(struct simulation *simulation, const struct mltcp_plan *plan);
void packets_join(struct simulation *simulation, uint32_t pair, uint32_t mltcp_job);

/* Computing times of iteration i are multiplied by stretches[i], cyclically. */
uint32_t packets_add_job(struct simulation *simulation, const struct job_plan *plan, const double *stretches,
                         size_t count);
void packets_add_phase(struct simulation *simulation, uint32_t job, int64_t length_ps, int sends);
void packets_add_message(struct simulation *simulation, uint32_t job, uint32_t pair, uint32_t sender, uint32_t receiver,
                         int64_t bytes, int64_t lead_bytes, const uint32_t *feeders, size_t count);

uint32_t packets_add_traffic(struct simulation *simulation);
/* The pair is a TCP connection or a flow with a window if there is no plan. */
void packets_add_pool(struct simulation *simulation, uint32_t traffic, uint32_t pair, int64_t max_connections,
                      int is_fresh, const struct reaction_plan *plan);
void packets_set_flows(struct simulation *simulation, uint32_t traffic, const struct flow_plan *flows, size_t count);
void packets_set_streams(struct simulation *simulation, uint32_t traffic, const struct stream_plan *plan);

/* Simulates at most that many events; returns how many are left. */
int64_t packets_run(struct simulation *simulation, int64_t until_ps, int64_t events, int while_jobs);
size_t packets_running(const struct simulation *simulation); /* jobs */
int64_t packets_now_ps(const struct simulation *simulation);
int64_t packets_last_end_ps(const struct simulation *simulation);
int64_t packets_paused_since_ps(const struct simulation *simulation, uint32_t port); /* below 0: not paused */
int64_t packets_hops(const struct simulation *simulation);
/* Data packets that the port's link has lost, or that its failures dropped. */
int64_t packets_lost(const struct simulation *simulation, uint32_t port);
size_t packets_pool(const struct simulation *simulation); /* the most packets that were in flight at once */

int64_t packets_completed(const struct simulation *simulation, uint32_t job);
/* Writes the first `count` iterations of a worker. */
void packets_iterations(const struct simulation *simulation, uint32_t job, uint32_t rank, size_t count,
                        struct iteration_record *into);
size_t packets_sample_count(const struct simulation *simulation);
size_t packets_row(const struct simulation *simulation);
void packets_samples(const struct simulation *simulation, int64_t *into);
/* Writes the port and the host of each counter of marks, if `into` is not null; returns the number of counters. */
size_t packets_mark_counters(const struct simulation *simulation, uint32_t *into);
void packets_pair_result(const struct simulation *simulation, uint32_t pair, struct pair_result *into);
/* The queue pair must be a TCP connection. */
void packets_connection_result(const struct simulation *simulation, uint32_t pair, struct connection_result *into);
/* The queue pair must be a flow with a window. */
void packets_window_result(const struct simulation *simulation, uint32_t pair, struct window_result *into);
void packets_flow_records(const struct simulation *simulation, uint32_t traffic, struct flow_record *into);
void packets_traffic_result(const struct simulation *simulation, uint32_t traffic, struct traffic_result *into);

#ifdef __cplusplus
}
#endif

#endif
