# SPDX-License-Identifier: Apache-2.0
"""What the network requirements thesis printed."""
