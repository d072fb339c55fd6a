# SPDX-License-Identifier: Apache-2.0
"""Sessions on a testbed's hosts: connections, checks, facts and settings for the trials of a run."""
