# SPDX-License-Identifier: Apache-2.0
"""The flow-level model as a testbed. It computes an experiment's results in seconds, without root."""
