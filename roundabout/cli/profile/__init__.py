# SPDX-License-Identifier: Apache-2.0
"""Commands that make a job's profile."""
