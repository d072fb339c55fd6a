# SPDX-License-Identifier: Apache-2.0
"""What a document's settings are on this guest, each by itself: null where it has no tool to read it, yet."""

import json
import sys
from pathlib import Path

import settings

host = settings.Host(Path("/"), Path("/nowhere"))
found = {}
for key in settings.flatten(json.load(sys.stdin)):
    try:
        found[" ".join(filter(None, key))] = settings.read_all(host, [key])[key]
    except (settings.SettingsError, OSError):
        found[" ".join(filter(None, key))] = None
print(json.dumps(found))
