# SPDX-License-Identifier: Apache-2.0
"""The constants of the lab's reaction points, and the search that derives them."""
