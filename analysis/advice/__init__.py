# SPDX-License-Identifier: Apache-2.0
"""Advice for jobs of a cluster: which should share links, shifted by how much, or not at all (docs/advice.md)."""
