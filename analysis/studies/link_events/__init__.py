# SPDX-License-Identifier: Apache-2.0
"""Events of links: how jobs go through failures, recoveries, losses and lower rates."""
