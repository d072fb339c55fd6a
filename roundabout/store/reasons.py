# SPDX-License-Identifier: Apache-2.0
"""Texts in the reasons of invalid attempts that reports search for."""

RESENT = "segments were sent again"
"""Reason that makes trials with slow iterations invalid, so that valid trials underestimate iteration times."""
