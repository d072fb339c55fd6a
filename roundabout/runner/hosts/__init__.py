# SPDX-License-Identifier: Apache-2.0
"""Reaching hosts: connections, the programs started over them, and clocks compared."""
