# SPDX-License-Identifier: Apache-2.0
"""Runs experiments: leases, journals, hosts, trials, checks."""
