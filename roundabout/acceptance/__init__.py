# SPDX-License-Identifier: Apache-2.0
"""Whether a fabric shares as it should: what is measured of it, and what limits say of that."""
