# SPDX-License-Identifier: Apache-2.0
"""The command line, one command a file."""
