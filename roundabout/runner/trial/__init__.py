# SPDX-License-Identifier: Apache-2.0
"""One trial over SSH: an attempt in a session of connected hosts, from settings to verdict."""
