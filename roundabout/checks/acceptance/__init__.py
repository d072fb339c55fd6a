# SPDX-License-Identifier: Apache-2.0
"""Acceptance test of a fabric: measurements of how it shares links, compared with limits."""
