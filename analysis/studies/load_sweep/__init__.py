# SPDX-License-Identifier: Apache-2.0
"""Jobs beside increasing cross traffic: iteration time against load, fits, and congestion points."""
