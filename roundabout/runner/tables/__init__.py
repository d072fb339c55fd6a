# SPDX-License-Identifier: Apache-2.0
"""Conversion of host programs' output to the tables of a trial."""
