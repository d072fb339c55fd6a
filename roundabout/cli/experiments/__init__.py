# SPDX-License-Identifier: Apache-2.0
"""Commands that list, check, plan and create experiment files."""
