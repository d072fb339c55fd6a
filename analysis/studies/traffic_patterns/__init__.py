# SPDX-License-Identifier: Apache-2.0
"""Traffic patterns: what jobs send when they are alone, rolled around a circle, and circles of several jobs."""
