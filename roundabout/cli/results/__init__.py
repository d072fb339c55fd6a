# SPDX-License-Identifier: Apache-2.0
"""Commands that show, compare and export stored runs."""
