# SPDX-License-Identifier: Apache-2.0
"""Commands on the lab of this machine."""
