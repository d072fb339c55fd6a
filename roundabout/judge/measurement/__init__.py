# SPDX-License-Identifier: Apache-2.0
"""Scenarios that measure a congestion control in a lab of the project's own."""
