# SPDX-License-Identifier: Apache-2.0
"""Stored runs: the layout of their folders, schemas of tables, reading and writing."""

from roundabout.store.contents import RAW
from roundabout.store.files import StoreError
from roundabout.store.run import Attempt, Identity, Run, build_table, new_run_id
from roundabout.store.unit_conversion import Units

__all__ = ["RAW", "Attempt", "Identity", "Run", "StoreError", "Units", "build_table", "new_run_id"]
