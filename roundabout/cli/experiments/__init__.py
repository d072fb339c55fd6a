# SPDX-License-Identifier: Apache-2.0
"""Commands that list, check and make experiment files."""
