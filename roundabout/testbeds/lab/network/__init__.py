# SPDX-License-Identifier: Apache-2.0
"""Links, routes and namespaces of a lab."""
