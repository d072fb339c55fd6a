# SPDX-License-Identifier: Apache-2.0
"""A cluster and its jobs over time, pure: what comes, where it is placed, and what becomes of that.

Times are seconds from the trace's start. Source: the interleaving thesis, sections 4.4.2 and 4.5.1.
"""
