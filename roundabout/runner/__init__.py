# SPDX-License-Identifier: Apache-2.0
"""Runs a plan trial by trial."""
