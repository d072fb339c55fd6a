# SPDX-License-Identifier: Apache-2.0
"""A cluster and its jobs over time: arrivals, placements, and the resulting histories, without input or output.

Times are seconds from the trace's start. Source: the interleaving thesis, sections 4.4.2 and 4.5.1.
"""
