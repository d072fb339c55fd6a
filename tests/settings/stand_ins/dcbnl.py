# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the module `dcbnetlink` of mlnx-tools: NVIDIA's own mlnx_qos then works on the state of tools.py.

Names and results are those that mlnx_qos uses. What the driver does is in tools.py, from mlx5's en_dcbnl.c.
"""

import errno
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

TSA = {"strict": 0, "ets": 2, "vendor": 255}
HOST = 1  # DCB_CAP_DCBX_HOST


def module(tools: ModuleType, root: Path) -> ModuleType:
    """Return the module, for the state below `root`."""
    found = ModuleType("dcbnetlink")
    found.DcbController = lambda interface: Controller(tools, root, interface)  # type: ignore[attr-defined]
    found.DcbAppTable = AppTable  # type: ignore[attr-defined]
    found.DcbApp = None  # type: ignore[attr-defined]
    return found


class AppTable:
    """The DSCP map: DSCP to priority."""

    def __init__(self, show: Any = None, priority_of: Iterable[tuple[str, int]] = ()) -> None:
        self.show, self.priority_of = show, dict(priority_of)

    def countAppSelector(self, _selector: int) -> int:  # noqa: N802
        return len(self.priority_of)

    def printAppSelector(self, _selector: int) -> None:  # noqa: N802
        print(*self.show(self.priority_of), sep="\n")

    def printDefaultPriority(self) -> None:  # noqa: N802
        """Print nothing: mlx5 has no default priority."""

    def delAppEntry(self, controller: "Controller", selector: int) -> None:  # noqa: N802
        for dscp, priority in self.priority_of.items():
            controller.del_ieee_app(selector, priority, int(dscp))

    def setDefaultAppEntry(self, controller: "Controller", selector: int, count: int) -> None:  # noqa: N802
        for dscp in range(count):
            controller.set_ieee_app(selector, dscp >> 3, dscp)


class Controller:
    """The kernel's DCB of one interface."""

    def __init__(self, tools: ModuleType, root: Path, interface: str) -> None:
        self.tools, self.root, self.interface = tools, root, interface

    def values(self, needs: str = "") -> dict[str, Any]:
        values: dict[str, Any] = self.tools.State(self.root, f"qos-{self.interface}").values
        if needs in values.get("lacks", ()):
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")
        return values

    @contextmanager
    def change(self) -> Iterator[Any]:
        state = self.tools.State(self.root, f"qos-{self.interface}")
        try:
            yield state
        except self.tools.RefusedError as error:
            raise OSError(str(error)) from error  # as dcbnetlink.py does, without a number
        state.save()

    def get_dcbx(self) -> int:
        return HOST if self.values()["dcbx"] == "os" else 0

    def set_dcbx(self, mode: int) -> None:
        with self.change() as state:
            state.values["dcbx"] = "os" if mode & HOST else "fw"

    def get_ieee_pfc_en(self) -> int:
        return sum(bit << priority for priority, bit in enumerate(self.values()["pfc"]))

    def get_ieee_pfc_delay(self) -> int:
        return int(self.values()["delay"])

    def set_ieee_pfc(self, _pfc_en: int, _delay: int) -> None:
        with self.change() as state:
            self.tools.set_pfc(state, [_pfc_en >> priority & 1 for priority in range(8)], _delay)

    def get_ieee_ets(self) -> tuple[list[int], list[int], list[int]]:
        values = self.values()
        return values["prio_tc"], [TSA[kind] for kind in self.tools.kinds(values)], self.tools.shares(values)

    def set_ieee_ets(self, _prio_tc: list[int], _tsa: list[int], _tc_bw: list[int]) -> None:
        kinds = {number: kind for kind, number in TSA.items()}
        with self.change() as state:
            self.tools.set_classes(state.values, _prio_tc, [kinds[number] for number in _tsa], _tc_bw)

    def get_ieee_maxrate(self) -> list[int]:
        self.values(needs="maxrate")
        return [0] * 8

    def get_ieee_dcb_buffer(self) -> tuple[list[int], list[int], int]:
        values = self.values(needs="buffers")
        return values["prio2buffer"], values["buffer_size"], values["max_buffer_size"]

    def set_dcb_buffer(self, _prio2buffer: list[int], _buffer_size: list[int], _tot_size: int) -> None:
        with self.change() as state:
            self.tools.set_buffers(state.values, _prio2buffer, _buffer_size)

    def get_ieee_app_table(self) -> AppTable:
        return AppTable(self.tools.show_dscps, self.values(needs="trust")["dscp"].items())

    def set_ieee_app(self, _selector: int, priority: int, protocol: int) -> None:
        with self.change() as state:
            self.tools.map_dscp(state.values, f"set,{protocol},{priority}")

    def del_ieee_app(self, _selector: int, priority: int, protocol: int) -> None:
        with self.change() as state:
            self.tools.map_dscp(state.values, f"del,{protocol},{priority}")
