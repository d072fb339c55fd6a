# SPDX-License-Identifier: Apache-2.0
"""From stored runs to models, intervals and plots."""
