# SPDX-License-Identifier: Apache-2.0
"""Marks, drops, pauses and send rates of a run."""
