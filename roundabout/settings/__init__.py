# SPDX-License-Identifier: Apache-2.0
"""The program on hosts that manages every setting that experiments change."""
