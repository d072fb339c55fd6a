# SPDX-License-Identifier: Apache-2.0
"""Cross traffic of a run: its loads, schedules, and what jobs send beside it."""
