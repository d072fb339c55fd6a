# SPDX-License-Identifier: Apache-2.0
"""Experiments put together from files: merging, overrides, factors and validation."""
