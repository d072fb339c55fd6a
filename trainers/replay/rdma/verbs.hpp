// SPDX-License-Identifier: Apache-2.0
// Owners of the objects of libibverbs and librdmacm, which are released in reverse order.
#pragma once

#include <infiniband/verbs.h>
#include <memory>
#include <rdma/rdma_cma.h>

namespace replay::rdma {

template <auto destroy> struct Destroy {
  template <typename T> void operator()(T *each) const { destroy(each); }
};

using EventChannel = std::unique_ptr<rdma_event_channel, Destroy<rdma_destroy_event_channel>>;
using Id = std::unique_ptr<rdma_cm_id, Destroy<rdma_destroy_id>>;
using QueuePair = std::unique_ptr<rdma_cm_id, Destroy<rdma_destroy_qp>>; // the id that owns the queue pair
using CompletionChannel = std::unique_ptr<ibv_comp_channel, Destroy<ibv_destroy_comp_channel>>;
using CompletionQueue = std::unique_ptr<ibv_cq, Destroy<ibv_destroy_cq>>;
using Memory = std::unique_ptr<ibv_mr, Destroy<ibv_dereg_mr>>;
using Event = std::unique_ptr<rdma_cm_event, Destroy<rdma_ack_cm_event>>;

} // namespace replay::rdma
