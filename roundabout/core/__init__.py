# SPDX-License-Identifier: Apache-2.0
"""Errors, paths, plugins and binary readers, which import nothing else of roundabout."""
