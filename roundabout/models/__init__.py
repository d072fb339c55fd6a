# SPDX-License-Identifier: Apache-2.0
"""Computed models: flow-level simulation, Cassini, clusters and their schedulers."""
