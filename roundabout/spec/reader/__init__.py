# SPDX-License-Identifier: Apache-2.0
"""Strict readers of YAML and JSON."""
