# SPDX-License-Identifier: Apache-2.0
"""Labs from creation to removal."""
