# SPDX-License-Identifier: Apache-2.0
"""Commands that start, resume, list and remove runs."""
