# SPDX-License-Identifier: Apache-2.0
"""What SONiC's generic config updater refuses, by release.

Source: sonic-utilities, branches 202205 to 202511; that of 202211 has no such list.

Fields that `rdma_config_update_validator` lets a patch replace; it lets it add and remove nothing. From 202511 on,
WRED_PROFILE is free, and a whole BUFFER_PROFILE may come and go. Platforms are left out: those that it does not list
may replace nothing either.
"""

import re
from typing import Any

REPLACED = {
    "WRED_PROFILE": ("green_min_threshold", "green_max_threshold", "green_drop_probability"),
    "BUFFER_PROFILE": ("dynamic_th", "xoff"),
}


def illegal(running: dict[str, Any], target: dict[str, Any], release: str) -> str | None:
    """The first table that a patch from `running` to `target` may not change."""
    if not re.match(r"202205|2023|2024|202505", release):
        return None
    for table, allowed in REPLACED.items():
        now, then = running.get(table, {}), target.get(table, {})
        if now.keys() != then.keys():
            return table
        for name, fields in now.items():
            if any(fields.get(field) != then[name].get(field) for field in {*fields, *then[name]} - {*allowed}):
                return table
    return None
