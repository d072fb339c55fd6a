# SPDX-License-Identifier: Apache-2.0
"""The packet-level model as a testbed: full rates and microseconds in minutes, without root, computed."""
