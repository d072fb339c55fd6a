# SPDX-License-Identifier: Apache-2.0
"""Buckets of gradients as PyTorch's DistributedDataParallel (DDP) makes them, and when each is ready.

Source: Li et al., PyTorch Distributed (VLDB 2020), and PyTorch's reducer: after the first iteration, buckets hold
gradients in the order in which that iteration's backward pass made them.
"""

FIRST_BYTES, MAX_BYTES = 2**20, 25 * 2**20
"""Sizes at which DDP closes its first and its later buckets, bytes: PyTorch's defaults."""


def assign_buckets(sizes, limits=(FIRST_BYTES, MAX_BYTES)):
    """Return the buckets of gradients of these sizes (bytes), each a list of indices of `sizes`.

    A bucket is closed once it has `limits` bytes or more; the last limit holds for all further buckets.
    """
    buckets, current, held, left = [], [], 0, list(limits)
    for index, size in enumerate(sizes):
        current.append(index)
        held += size
        if held >= left[0]:
            buckets.append(current)
            current, held, left = [], 0, left[1:] or left
    return [*buckets, current] if current else buckets


def on_gradient(parameter, call):
    """Call `call()` each time that a backward pass has accumulated the parameter's gradient.

    Return the hook's handle, and what must be kept as long as the hook is used. PyTorch before 2.1 has no such hook,
    and its DDP takes the node that accumulates, as done here.
    """
    if hasattr(parameter, "register_post_accumulate_grad_hook"):
        return parameter.register_post_accumulate_grad_hook(lambda _: call()), None
    node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
    return node.register_hook(lambda *_: call()), node


class BucketClock:
    """The instants at which a backward pass makes buckets of gradients ready.

    `mark` returns a clock's mark of the present instant. The first backward pass determines the buckets. `close` it:
    PyTorch never frees parameters whose hooks refer to them.
    """

    def __init__(self, parameters, mark):
        self._parameters, self._mark = [each for each in parameters if each.requires_grad], mark
        self._arrived = []
        self._bucket_of, self._missing, self.marks = {}, [], []
        self.buckets = []
        self._hooks = [on_gradient(each, self._note(index)) for index, each in enumerate(self._parameters)]

    def close(self):
        """Remove all hooks, and let go of the parameters."""
        for handle, _ in self._hooks:
            handle.remove()
        self._hooks, self._parameters = [], []

    def _note(self, index):
        return lambda: self._gradient_is_ready(index)

    def _gradient_is_ready(self, index):
        if not self.buckets:
            self._arrived.append(index)
            return
        bucket = self._bucket_of[index]
        self._missing[bucket] -= 1
        if not self._missing[bucket]:
            self.marks[bucket] = self._mark()

    def make_buckets(self):
        """Make the buckets by the backward pass that has been done.

        Raises ValueError if a parameter had no gradient or several, which DDP refuses.
        """
        if sorted(self._arrived) != list(range(len(self._parameters))):
            raise ValueError(
                f"found {len(self._arrived)} gradients, expected one of each of {len(self._parameters)} parameters"
            )
        sizes = [self._bytes_of(index) for index in self._arrived]
        self.buckets = [[self._arrived[each] for each in bucket] for bucket in assign_buckets(sizes)]
        self._bucket_of = {index: place for place, bucket in enumerate(self.buckets) for index in bucket}

    def begin(self):
        """Begin a backward pass."""
        self._missing, self.marks = [len(bucket) for bucket in self.buckets], [None] * len(self.buckets)

    def _bytes_of(self, index):
        return self._parameters[index].numel() * self._parameters[index].element_size()

    def sizes(self):
        """Return the size of each bucket, bytes."""
        return [sum(map(self._bytes_of, bucket)) for bucket in self.buckets]
