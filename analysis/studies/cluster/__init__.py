# SPDX-License-Identifier: Apache-2.0
"""Schedulers of a cluster: iteration times, marks, completion and fairness of all jobs of a trace, by variant."""
