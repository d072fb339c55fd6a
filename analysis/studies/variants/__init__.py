# SPDX-License-Identifier: Apache-2.0
"""Ways to share a link, compared: the gain of each variant, and how soon its jobs interleave."""
