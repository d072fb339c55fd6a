# SPDX-License-Identifier: Apache-2.0
"""Reports, comparisons and exports of stored runs."""
