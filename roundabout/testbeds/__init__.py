# SPDX-License-Identifier: Apache-2.0
"""Where experiments run: a folder a testbed, with all that is its own."""
