# SPDX-License-Identifier: Apache-2.0
"""A fake settings.py: the host's settings are a file, which it writes, compares and removes."""

import json
import sys
import time

from fake_host import fault, home, words

path, command = home / "settings.json", words[2]
if fault(f"freezes_in_{command}"):
    time.sleep(60)
if fault("settings_fail"):
    sys.exit("error: sysctl net.ipv4.tcp_ecn cannot be written")
if command == "restore":
    path.unlink(missing_ok=True)
    sys.exit()
asked = json.load(sys.stdin)
if command == "apply":
    path.write_text(json.dumps(asked))
if command == "read" and fault("drift"):
    now = json.loads(path.read_text())
    now["sysctl"]["net.ipv4.tcp_ecn"] = 0
    path.write_text(json.dumps(now))
now = json.loads(path.read_text())
wrong = [
    {"setting": f"sysctl {name}", "expected": value, "found": now["sysctl"].get(name)}
    for name, value in asked["sysctl"].items()
    if now["sysctl"].get(name) != value
]
print(json.dumps({"found": now, "applied": now, "changed": [], "differs": wrong}))
