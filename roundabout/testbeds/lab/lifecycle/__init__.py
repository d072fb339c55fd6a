# SPDX-License-Identifier: Apache-2.0
"""Creation, use and removal of labs."""
