# SPDX-License-Identifier: Apache-2.0
"""Scenes that measure a congestion control on a lab or on a pair of hosts."""
