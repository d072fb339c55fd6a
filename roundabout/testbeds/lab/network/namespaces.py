# SPDX-License-Identifier: Apache-2.0
"""Network namespaces: execution of functions inside one, by a thread of this process, and removal."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from pyroute2 import NetlinkError, netns

from roundabout.testbeds.lab.errors import LabError

Result = TypeVar("Result")


def run_inside(pid: int, work: Callable[[], Result]) -> Result:
    """Run `work` in the network namespace of the process `pid`, and return its result.

    Sockets that `work` opens stay in the namespace and can be used from here.
    """
    future: Future[Result] = Future()

    def enter_and_work() -> None:
        try:
            descriptor = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
            try:
                netns.setns(descriptor)
            finally:
                os.close(descriptor)
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    thread = threading.Thread(target=enter_and_work, daemon=True)
    thread.start()
    thread.join()
    return future.result()


def remove_namespace(name: str) -> None:
    """Remove the namespace that `ip netns` calls `name`, if it exists. Raises LabError."""
    try:
        netns.remove(name)
    except FileNotFoundError:
        pass
    except (OSError, NetlinkError) as error:
        raise LabError(f"cannot remove the network namespace {name}: {error}") from error
