# SPDX-License-Identifier: Apache-2.0
"""Commands that use the lab of this machine."""
