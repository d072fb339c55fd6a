# SPDX-License-Identifier: Apache-2.0
"""Jobs that share a link: iteration times by variant, and whether the jobs interleave."""
