# SPDX-License-Identifier: Apache-2.0
"""Results as pandas' DataFrames, and figures of them: the functions of `roundabout.api` for notebooks.

Columns are named with their units. Times are ms since the start of the first iteration of their trial, at the papers'
scale.
"""
