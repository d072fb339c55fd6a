# SPDX-License-Identifier: Apache-2.0
"""Connections to hosts, programs on hosts, and comparison of clocks."""
