# SPDX-License-Identifier: Apache-2.0
"""Counters of switches' queues, read only. Each system has a module."""
