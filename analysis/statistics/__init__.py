# SPDX-License-Identifier: Apache-2.0
"""Pure mathematics on samples: intervals, periods and phases, models of degradation. It knows no run and no file."""
