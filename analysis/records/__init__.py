# SPDX-License-Identifier: Apache-2.0
"""Profiles from what clusters record of their jobs' collectives already: one module a format, which reads `Record`s."""
