# SPDX-License-Identifier: Apache-2.0
"""Reasons of invalid attempts that reports look for."""

RESENT = "segments were sent again"
"""Because of which slow iterations are missing from what is valid."""
