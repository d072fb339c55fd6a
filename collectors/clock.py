#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Answers each line on stdin by one line about this host's clocks. Ends when stdin closes.

`sync` requests the daemon that disciplines the clocks: a JSON object. Any other line requests the time: `<monotonic ns>
<UTC ns>`, both of one instant. The requesting program bounds the offset between two hosts' clocks by the time that the
question took (Cristian's algorithm).
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

QUERY_TIMEOUT_S = 2
SBIN = "/usr/sbin:/sbin"  # not on every user's PATH


def main():
    """Answer until end of file."""
    for question in iter(sys.stdin.readline, ""):
        answer = json.dumps(sync()) if question.strip() == "sync" else "%d %d" % read_clocks()
        print(answer, flush=True)


def read_clocks():
    """Return monotonic and UTC ns of one instant.

    Of three attempts the one with the least time between both readings is used, because a process may be interrupted.
    """
    looks = [(time.monotonic_ns(), time.time_ns(), time.monotonic_ns()) for _ in range(3)]
    before, utc, after = min(looks, key=lambda look: look[2] - look[0])
    return (before + after) // 2, utc


def sync():
    """Return the state of the daemon that disciplines this host's clocks; its kind is `none` if no daemon answers."""
    return {"chrony": chrony() or "none", "ptp": ptp() or "none", "hardware_clocks": hardware_clocks()}


def chrony():
    """Return chronyd's state, or None without it."""
    words = command_output(["chronyc", "-c", "tracking"]).strip().split(",")
    if len(words) != 14:
        return None
    _, reference, stratum, _, behind_s, _, _, frequency_ppm, _, _, delay_s, dispersion_s, _, leap = words
    return {
        "reference": reference,
        "stratum": int(stratum),
        "ahead_ns": -parse_ns(behind_s),
        "root_delay_ns": parse_ns(delay_s),
        "root_dispersion_ns": parse_ns(dispersion_s),
        "frequency_ppm": float(frequency_ppm),
        "leap": leap,
    }


def ptp():
    """Return ptp4l's state, or None without it."""
    said = command_output(["pmc", "-u", "-b", "0", "GET TIME_STATUS_NP", "GET PORT_DATA_SET"])
    pairs = [line.split() for line in said.splitlines()]
    fields = {words[0]: words[1] for words in pairs if len(words) == 2}
    if not {"master_offset", "gmIdentity"} <= fields.keys():
        return None
    return {
        "port_states": [words[1] for words in pairs if words[:1] == ["portState"]],
        "grandmaster": fields["gmIdentity"],
        "grandmaster_present": fields.get("gmPresent") == "true",
        "master_offset_ns": int(fields["master_offset"]),
    }


def hardware_clocks():
    """Return the hardware clocks of network cards, each as device and name, such as `ptp0 mlx5_p2p`."""
    return [
        "%s %s" % (each.parent.name, each.read_text().strip()) for each in Path("/sys/class/ptp").glob("*/clock_name")
    ]


def command_output(command):
    """Return the stdout of a command; empty if it is missing, fails or does not end."""
    environment = {**os.environ, "PATH": os.environ.get("PATH", "") + ":" + SBIN}
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            timeout=QUERY_TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout


def parse_ns(seconds):
    """Convert seconds as text to ns."""
    return round(float(seconds) * 1e9)


if __name__ == "__main__":
    main()
