# SPDX-License-Identifier: Apache-2.0
"""Rates of a ring's nodes inside iterations, while the link of one node carries cross traffic."""
