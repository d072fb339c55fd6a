# SPDX-License-Identifier: Apache-2.0
"""Read-back of the routes that switches give to a trial's flows."""
