# SPDX-License-Identifier: Apache-2.0
"""Records a worker's iterations by PyTorch's own profiler (Kineto), as clusters do, and prints the trace."""

import base64
import contextlib
import gzip
import os
import tempfile

LEFT_OUT = 1  # number of first iterations that are not recorded, because the profiler warms up


@contextlib.contextmanager
def recorded(requested, iterations, say):
    """Yield the function to call after each iteration.

    `say` reports the end of the last recorded iteration, and then the trace.

    Without a request in `requested` nothing is recorded. Raises ValueError for a PyTorch that cannot record.
    """
    if not requested:
        yield lambda: None
        return
    import torch  # noqa: PLC0415 - whether it is there is for the worker to say

    if not torch.autograd.kineto_available():
        raise ValueError("found PyTorch {} without Kineto, expected one that records".format(torch.__version__))
    if iterations <= LEFT_OUT:
        raise ValueError("found {} iterations to record, expected {} or more".format(iterations, LEFT_OUT + 1))
    left = iterations

    def step():
        nonlocal left
        left -= 1
        if not left:  # the profiler stops within its last step, and then exports: no iteration ends for a while
            say("recording")
        profiler.step()

    schedule = torch.profiler.schedule(wait=0, warmup=LEFT_OUT, active=iterations - LEFT_OUT, repeat=1)
    with torch.profiler.profile(schedule=schedule, record_shapes=True) as profiler:  # of all that this PyTorch can
        yield step
    say("record", format="kineto", gzip_base64=packed(profiler))


def packed(profiler):
    """Return the trace, gzipped and in base64, so that nothing stays on the host."""
    with tempfile.TemporaryDirectory(prefix="roundabout-record-") as folder:
        path = os.path.join(folder, "kineto.json")
        profiler.export_chrome_trace(path)
        with open(path, "rb") as file:
            return base64.b64encode(gzip.compress(file.read())).decode()
