# SPDX-License-Identifier: Apache-2.0
"""State of runs on this machine: leases, undo journals and temporary files."""
