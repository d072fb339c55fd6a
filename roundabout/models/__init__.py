# SPDX-License-Identifier: Apache-2.0
"""Models that compute: flow-level simulation, Cassini, clusters and their schedulers."""
