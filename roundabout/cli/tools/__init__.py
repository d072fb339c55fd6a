# SPDX-License-Identifier: Apache-2.0
"""Commands that inspect this machine and its files."""
