# SPDX-License-Identifier: Apache-2.0
"""Execution of experiments with their progress, tables and verdicts on the terminal."""
