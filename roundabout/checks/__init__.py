# SPDX-License-Identifier: Apache-2.0
"""Checks that measure, compare with limits, and report: `roundabout acceptance` of a fabric, `judge` of a transport."""
