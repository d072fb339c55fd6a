# SPDX-License-Identifier: Apache-2.0
"""A fake transport program: no kernel has it, and its counters are made up."""

import time

print(f'{{"params": {{}}, "counters": {{"cnps": {time.monotonic_ns() % 1000}, "alpha": 0.5}}}}')
