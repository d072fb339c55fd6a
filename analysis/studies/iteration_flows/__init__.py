# SPDX-License-Identifier: Apache-2.0
"""What the nodes of a ring send inside iterations while one of them meets cross traffic."""
