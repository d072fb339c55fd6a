# SPDX-License-Identifier: Apache-2.0
"""Prometheus for the testbeds of this machine, and a relay on loopback that queries the hosts' exporters."""
