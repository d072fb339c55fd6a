# SPDX-License-Identifier: Apache-2.0
"""The lab's constants, and the search that derives them from a time-dilated run."""
