# SPDX-License-Identifier: Apache-2.0
"""Prometheus on the testbeds of this machine: a relay on loopback that asks hosts' exporters, and Prometheus itself."""
