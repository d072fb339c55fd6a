# SPDX-License-Identifier: Apache-2.0
"""Cross traffic of a run: its loads, its planned flows, and the rates of jobs beside it."""
