# SPDX-License-Identifier: Apache-2.0
"""The host-side program that owns every setting which experiments touch."""
