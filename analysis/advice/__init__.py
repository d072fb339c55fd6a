# SPDX-License-Identifier: Apache-2.0
"""Advice for jobs of a cluster.

Which should share links, shifted by how much, or not at all (docs/how-to/advice.md).
"""
