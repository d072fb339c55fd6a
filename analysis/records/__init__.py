# SPDX-License-Identifier: Apache-2.0
"""Profiles from records that clusters already have of their jobs' collectives.

One module a format, which reads `Record`s.
"""
