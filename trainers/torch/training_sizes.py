# SPDX-License-Identifier: Apache-2.0
"""Sizes of networks whose workers send each other the bytes of a job's profile."""

import math

FEATURES, CLASSES = 64, 10
NARROW = 64  # width between the two halves of a block that workers divide


def gradient_numbers(job):
    """Return how many 32-bit numbers the workers' ring must all-reduce so that each sends the profile's bytes.

    Source: Salamy, equation 3.1. Raises ValueError for a profile with any other exchange than rings of all workers.
    """
    count = len(job["workers"])
    sent = 0
    for phase in job["phases"]:
        transfers = phase.get("transfers", [])
        ring = {(rank, (rank + 1) % count) for rank in range(count)}
        if transfers and {tuple(each[:2]) for each in transfers} != ring:
            raise ValueError(
                f"found phase {phase['name']!r}, expected a ring of all workers: gradients are all-reduced"
            )
        sent += transfers[0][2] if transfers else 0
    return sent * count // (8 * (count - 1))


def width(numbers):
    """Return the width of two hidden layers with at most `numbers` parameters. Raises ValueError for too few."""
    linear, fixed = FEATURES + CLASSES + 2, CLASSES
    found = int((math.sqrt(linear**2 + 4 * (numbers - fixed)) - linear) / 2) if numbers > fixed else 0
    if found < 1:
        raise ValueError(f"found gradients of {numbers} numbers, expected {linear + 1 + fixed} or more")
    return found


def sent_by_first(job):
    """Return the bytes that the first worker sends to all others together in an iteration."""
    return sum(each[2] for phase in job["phases"] for each in phase.get("transfers", []) if each[0] == 0)


def division(parallel, count):
    """Return the numbers of parts of layers, of parts of each layer, and of copies of a divided network.

    Pipelines have as few parts as possible, so that there are as many copies (a guess, as in
    roundabout/models/cluster). Raises ValueError if a hybrid is impossible.
    """
    if parallel == "data":
        return 1, 1, count
    if parallel == "tensor":
        return 1, count, 1
    if parallel == "pipeline":
        parts = next(each for each in range(2, count + 1) if count % each == 0)
        return parts, 1, count // parts
    if count % 4:
        raise ValueError(f"found {count} workers, expected a multiple of 4: a hybrid has 2 parts of 2 tensors each")
    return 2, 2, count // 4


def ring(count, numbers):
    """Return how many numbers each of `count` workers in a ring sends to all-reduce `numbers` numbers."""
    return 2 * (count - 1) / count * numbers


def numbers_sent(parts, tensors, copies, batch):
    """Return how many numbers the first worker sends in an iteration, per unit of the network's width.

    The first worker has the input layer and one block, or the whole network if layers are not divided. It sends
    activations to the next part. Each block is all-reduced among tensors once forward and once backward, and gradients
    among copies.
    """
    activations = batch if parts > 1 else 0
    parameters = (FEATURES + 1) + (2 * NARROW // tensors + 1) + (CLASSES if parts == 1 else 0)
    return activations + 2 * ring(tensors, batch) + ring(copies, parameters)


def blocks(parts):
    """Return the number of blocks in a network of `parts` parts with two layers each, first and last included."""
    return max(2 * parts - 2, 1)


def divided_width(job, batch, parts, tensors, copies):
    """Return the width of a divided network whose first worker sends the profile's bytes.

    Raises ValueError for too few.
    """
    found = round(sent_by_first(job) / 4 / numbers_sent(parts, tensors, copies, batch))
    if found < 1:
        raise ValueError(f"found {sent_by_first(job)} bytes of the first worker, expected some for each of its batch")
    return found
