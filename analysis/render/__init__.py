# SPDX-License-Identifier: Apache-2.0
"""The look of results: on a screen of 80 columns, and as a page."""
