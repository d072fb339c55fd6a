# SPDX-License-Identifier: Apache-2.0
"""Advice for jobs of a cluster.

The advice names jobs that may share links, the time-shifts that they need, and jobs to separate
(docs/how-to/advice.md).
"""
