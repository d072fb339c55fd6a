# SPDX-License-Identifier: Apache-2.0
"""A fake settings.py: the host's settings are a file, which it writes, compares and removes."""

import json
import os
import sys
import time

from fake_host import fault, home, words

path, command = f"{home}/settings.json", words[2]
if fault(f"freezes_in_{command}"):
    time.sleep(60)
if fault("settings_fail"):
    sys.exit("error: sysctl net.ipv4.tcp_ecn cannot be written")
if command == "restore":
    if os.path.exists(path):
        os.remove(path)
    sys.exit()


def stored():
    """Return the settings in the file."""
    with open(path) as file:
        return json.load(file)


def store(settings):
    """Write the file."""
    with open(path, "w") as file:
        json.dump(settings, file)


asked = json.load(sys.stdin)
if command == "apply":
    store(asked)
if command == "read" and fault("drift"):
    now = stored()
    now["sysctl"]["net.ipv4.tcp_ecn"] = 0
    store(now)
now = stored()
wrong = [
    {"setting": f"sysctl {name}", "expected": value, "found": now["sysctl"].get(name)}
    for name, value in asked["sysctl"].items()
    if now["sysctl"].get(name) != value
]
print(json.dumps({"found": now, "applied": now, "changed": [], "differs": wrong}))
