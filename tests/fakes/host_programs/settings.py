# SPDX-License-Identifier: Apache-2.0
"""A fake settings.py: the host's settings are a file, which it writes, compares and removes."""

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

requested = sys.stdin.read()
if command == "apply":
    with open(path, "w") as file:
        file.write(requested)
with open(path) as file:
    now = file.read()
differs = "[]"
if (command == "read" and fault("drift")) or now != requested:
    import json  # takes longer than the rest of the program

    found, expected = json.loads(now), json.loads(requested)
    if now == requested:
        found["sysctl"]["net.ipv4.tcp_ecn"] = 0
        now = json.dumps(found)
        with open(path, "w") as file:
            file.write(now)
    differs = json.dumps(
        [
            {"setting": f"sysctl {name}", "expected": value, "found": found["sysctl"].get(name)}
            for name, value in expected["sysctl"].items()
            if found["sysctl"].get(name) != value
        ]
    )
print(f'{{"found": {now}, "applied": {now}, "changed": [], "differs": {differs}}}')
