# SPDX-License-Identifier: Apache-2.0
"""The command line interface. Each command is a module."""
