# SPDX-License-Identifier: Apache-2.0
"""How results look: on a screen of 80 columns, and as a page."""
