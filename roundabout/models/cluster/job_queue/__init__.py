# SPDX-License-Identifier: Apache-2.0
"""Slowdowns of a queue of jobs on a leaf-spine: jobs of weighted types, whole servers, and rules that choose spines."""
