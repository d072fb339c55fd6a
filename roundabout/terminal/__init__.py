# SPDX-License-Identifier: Apache-2.0
"""Execution of experiments from the terminal, which shows progress, tables and verdicts."""
