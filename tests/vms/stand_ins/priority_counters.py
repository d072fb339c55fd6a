# SPDX-License-Identifier: Apache-2.0
"""What `ethtool -S` says of a ConnectX NIC's priorities: counts of real packets by DSCP, by filters of the kernel.

priority_counters.py begin NIC    put the filters on the NIC
priority_counters.py show NIC     print the counts, by mlx5's names
"""

import json
import subprocess
import sys

# Priority by DSCP, as in the inventory's defaults. All other packets are of priority 0.
PRIORITIES = {26: 3, 48: 6}
SIDES = {"ingress": "rx", "egress": "tx"}
OTHERS_PREF = 100


def tc(*words: str) -> str:
    return subprocess.run(["tc", *words], check=True, capture_output=True, text=True).stdout


def begin(nic: str) -> None:
    tc("qdisc", "replace", "dev", nic, "clsact")
    for side in SIDES:
        for dscp, priority in PRIORITIES.items():
            match = ["flower", "ip_tos", f"{dscp << 2:#x}/0xfc", "action", "pass"]
            tc("filter", "add", "dev", nic, side, "protocol", "ip", "pref", str(priority), *match)
        every = ["protocol", "all", "pref", str(OTHERS_PREF), "matchall", "action", "pass"]
        tc("filter", "add", "dev", nic, side, *every)


def show(nic: str) -> None:
    for side, name in SIDES.items():
        for each in json.loads(tc("-s", "-j", "filter", "show", "dev", nic, side)):
            for action in each.get("options", {}).get("actions", []):
                priority = each["pref"] % OTHERS_PREF
                for unit in ("bytes", "packets"):
                    print(f"     {name}_prio{priority}_{unit}: {action['stats'][unit]}")


{"begin": begin, "show": show}[sys.argv[1]](sys.argv[2])
