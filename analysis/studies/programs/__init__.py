# SPDX-License-Identifier: Apache-2.0
"""Programs as jobs: iteration times and bus bandwidths beside a baseline."""
