# SPDX-License-Identifier: Apache-2.0
"""ECN marking by an eBPF program on each switch port."""
