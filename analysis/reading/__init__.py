# SPDX-License-Identifier: Apache-2.0
"""Readers of a run's tables. Nothing here fits, judges or draws."""
