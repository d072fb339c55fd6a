# SPDX-License-Identifier: Apache-2.0
"""Roundabout: how training jobs share a network, and how to make them take turns."""
