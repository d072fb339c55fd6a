# SPDX-License-Identifier: Apache-2.0
"""Pure mathematics on samples: intervals, periods and phases, fairness, and models of degradation.

Nothing here reads runs or files.
"""
