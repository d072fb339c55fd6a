# SPDX-License-Identifier: Apache-2.0
"""Runs on disk: layout, schemas, reading and writing."""
