# SPDX-License-Identifier: Apache-2.0
"""One trial over SSH: a bench of connected hosts, and an attempt on it, from settings to verdict."""
