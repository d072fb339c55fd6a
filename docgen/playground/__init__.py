# SPDX-License-Identifier: Apache-2.0
"""The playground of the documentation's site: two jobs on one link, computed in the page by the fluid engine."""
