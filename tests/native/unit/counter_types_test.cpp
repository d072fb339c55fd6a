// SPDX-License-Identifier: Apache-2.0
#include "collectors/sampler/counter_types.hpp"

#include <gtest/gtest.h>

namespace sampler {
namespace {

void expect(const Meaning &found, const char *unit, int width_bits) {
  EXPECT_EQ(found.unit, unit);
  EXPECT_EQ(found.width_bits, width_bits);
}

TEST(RdmaHardwareCounter, CountsCongestionIn64BitsAndQueuePairsIn32) {
  for (const char *name : {"np_ecn_marked_roce_packets", "np_cnp_sent", "rp_cnp_handled", "rp_cnp_ignored"})
    expect(rdma_hw_meaning(name), "packets", 64);
  for (const char *name :
       {"out_of_sequence", "packet_seq_err", "implied_nak_seq_err", "local_ack_timeout_err", "duplicate_request",
        "rnr_nak_retry_err", "out_of_buffer", "roce_adp_retrans", "roce_slow_restart", "roce_slow_restart_cnps"})
    expect(rdma_hw_meaning(name), "packets", 32);
  expect(rdma_hw_meaning("lifespan"), "ms", 64);
}

TEST(RdmaPortCounter, CountsDataInWordsOfFourBytes) {
  expect(rdma_port_meaning("port_xmit_data"), "bytes", 64);
  EXPECT_EQ(rdma_port_factor("port_rcv_data"), 4u);
  expect(rdma_port_meaning("port_rcv_packets"), "packets", 64);
  EXPECT_EQ(rdma_port_factor("port_rcv_packets"), 1u);
  expect(rdma_port_meaning("port_xmit_wait"), "ticks", 32);
  expect(rdma_port_meaning("port_xmit_discards"), "packets", 16);
  expect(rdma_port_meaning("link_downed"), "events", 8);
}

TEST(DriverStatistic, HasItsUnitFromItsName) {
  for (const char *name : {"rx_prio3_bytes", "tx_bytes_phy", "rx_vport_rdma_unicast_bytes"})
    expect(ethtool_meaning(name), "bytes", 64);
  for (const char *name : {"tx_prio3_packets", "rx_prio3_pause", "rx_prio3_discards", "tx_discards_phy",
                           "rx_out_of_buffer", "rx_64_bytes_phy", "rx_65_to_127_bytes_phy"})
    expect(ethtool_meaning(name), "packets", 64);
  expect(ethtool_meaning("rx_prio3_pause_duration"), "us", 64);
  expect(ethtool_meaning("tx_prio3_pause_transition"), "events", 64);
  expect(ethtool_meaning("outbound_pci_stalled_rd"), "percent", 64);
  expect(ethtool_meaning("outbound_pci_stalled_rd_events"), "s", 64);
}

} // namespace
} // namespace sampler
