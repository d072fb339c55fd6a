# SPDX-License-Identifier: Apache-2.0
"""Profiles of jobs from profiler records of their collectives, which clusters often have already.

Each format has a module in `readers` that reads its files.
"""
