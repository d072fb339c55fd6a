# SPDX-License-Identifier: Apache-2.0
"""Calibrations of the lab held against what HotNets'22 printed."""
