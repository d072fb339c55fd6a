#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's torchrun, also for PyTorch 1.13 with Python 3.11.

There an enumeration no longer yields its member of value 0, by which torchrun looks up that nothing is redirected. The
store of torchrun's first node listens as a worker's own (rendezvous_store.py).
"""

import functools
import json
import sys

import rendezvous_store

try:
    from torch.distributed import run
    from torch.distributed.elastic.multiprocessing import Std
    from torch.distributed.elastic.rendezvous import static_tcp_rendezvous
except ImportError as error:
    sys.exit(f"{sys.executable} has no PyTorch ({error})")

if Std.from_str("0") is None:
    Std.from_str = classmethod(lambda kind, reported: kind(int(reported)))
workers = json.loads(sys.argv[sys.argv.index("--job") + 1])["workers"]
static_tcp_rendezvous.TCPStore = functools.partial(
    rendezvous_store.create_store, static_tcp_rendezvous.TCPStore, hosts=[worker["address"] for worker in workers]
)
run.main()
