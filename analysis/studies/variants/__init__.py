# SPDX-License-Identifier: Apache-2.0
"""Ways to share a link beside each other: what each variant gains, and how soon its jobs interleave."""
