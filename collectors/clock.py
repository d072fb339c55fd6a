#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Answers each line on stdin with this host's clocks: `<monotonic ns> <UTC ns>`. Ends when stdin closes.

Whoever asks bounds the offset between two hosts' clocks by the time that the question took (Cristian's algorithm).
"""

import sys
import time


def main():
    """Answer until end of file."""
    while sys.stdin.readline():
        print(time.monotonic_ns(), time.time_ns(), flush=True)


if __name__ == "__main__":
    main()
