# SPDX-License-Identifier: Apache-2.0
"""Prometheus on what stands and runs here: a relay on loopback, which asks hosts' exporters, and Prometheus itself."""
