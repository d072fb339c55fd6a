# SPDX-License-Identifier: Apache-2.0
"""Assembly of experiments from files: merging, overrides, factors and validation."""
