# SPDX-License-Identifier: Apache-2.0
"""Comparison of ways to share a link: the gain of each variant, and how soon its jobs interleave."""
