# SPDX-License-Identifier: Apache-2.0
"""Acceptance of a fabric: measurements of how it shares links, and their limits."""
