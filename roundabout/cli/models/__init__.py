# SPDX-License-Identifier: Apache-2.0
"""Commands that compute without a testbed."""
