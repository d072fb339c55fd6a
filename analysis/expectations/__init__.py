# SPDX-License-Identifier: Apache-2.0
"""Printed figures of the papers, and the verdicts of a run on them."""
