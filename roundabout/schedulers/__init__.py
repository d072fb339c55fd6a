# SPDX-License-Identifier: Apache-2.0
"""Who runs where: one file a scheduler, whose `scheduler()` makes it (roundabout.cluster.state.Scheduler)."""
