# SPDX-License-Identifier: Apache-2.0
"""Execution of experiments: leases, undo journals, hosts, trials and checks."""
