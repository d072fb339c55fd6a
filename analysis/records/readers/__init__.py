# SPDX-License-Identifier: Apache-2.0
"""Readers of profiler records, one format a module."""
