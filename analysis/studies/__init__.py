# SPDX-License-Identifier: Apache-2.0
"""A folder a kind of report: what is computed of a run, and the figures and tables that show it."""
