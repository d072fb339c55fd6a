# SPDX-License-Identifier: Apache-2.0
"""Jobs beside more and more cross traffic: iteration time against load, fits, congestion points."""
