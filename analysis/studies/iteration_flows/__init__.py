# SPDX-License-Identifier: Apache-2.0
"""Rates of a ring's nodes inside iterations while one of them shares its link with cross traffic."""
