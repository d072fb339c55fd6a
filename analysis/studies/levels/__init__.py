# SPDX-License-Identifier: Apache-2.0
"""Iteration times against the levels of any factor."""
