# SPDX-License-Identifier: Apache-2.0
"""Commands that pages show: where they stand, and whether a reader could give them."""
