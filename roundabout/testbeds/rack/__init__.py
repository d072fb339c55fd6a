# SPDX-License-Identifier: Apache-2.0
"""A rack: servers and switches that an inventory names."""
