# SPDX-License-Identifier: Apache-2.0
"""Errors, paths, plugins and binary readers. These modules import nothing from other roundabout packages."""
