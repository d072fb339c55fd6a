# SPDX-License-Identifier: Apache-2.0
"""The hosts of a testbed, connected and checked for the trials of a run."""
