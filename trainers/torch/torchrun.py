#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's torchrun, also for PyTorch 1.13 with Python 3.11.

There an enumeration no longer yields its member of value 0, by which torchrun looks up that nothing is redirected.
"""

import sys

try:
    from torch.distributed import run
    from torch.distributed.elastic.multiprocessing import Std
except ImportError as error:
    sys.exit(f"{sys.executable} has no PyTorch ({error})")

if Std.from_str("0") is None:
    Std.from_str = classmethod(lambda kind, reported: kind(int(reported)))
run.main()
