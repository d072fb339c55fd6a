# SPDX-License-Identifier: Apache-2.0
"""A Tofino's tables as `bfshell -b` shows them to a script. Constructed from public scripts."""

import re
import traceback
from pathlib import Path
from typing import Any, NamedTuple

from state import load, save


class Form(NamedTuple):
    """A table's key fields, and what its other fields are called when they are read."""

    key: tuple[str, ...]
    columns: dict[str, bytes]


EGRESS = "roundabout.pipe.Egress"
FORMS = {
    f"{EGRESS}.ecn_min_cells": Form(("REGISTER_INDEX",), {"f1": b"Egress.ecn_min_cells.f1"}),
    f"{EGRESS}.ecn_max_cells": Form(("REGISTER_INDEX",), {"f1": b"Egress.ecn_max_cells.f1"}),
    "port.port_hdl_info": Form(("CONN_ID", "CHNL_ID"), {"DEV_PORT": b"$DEV_PORT"}),
    "port.port": Form(("DEV_PORT",), {f"{way}_PFC_EN_MAP": f"${way}_PFC_EN_MAP".encode() for way in ("TX", "RX")}),
    "tm.port.flowcontrol": Form(("dev_port",), {"mode_tx": b"mode_tx", "mode_rx": b"mode_rx"}),
    "tm.ppg.cfg": Form(("dev_port", "pg_id"), {"skid_max_cells": b"skid_max_cells"}),
}


class Entry(NamedTuple):
    data: dict[bytes, Any]


class Table:
    """One table of the switch whose state is in `folder`."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name, self.form = folder, name, FORMS[name]

    def get(self, *positional: Any, print_ents: bool = True, **fields: Any) -> Entry:
        assert not print_ents
        entry = load(self.folder)["running"][self.name][self._key(list(positional), fields)]
        return Entry({self.form.columns[field]: value for field, value in entry.items()})

    def mod(self, *positional: Any, **fields: Any) -> int:
        """Prints why it does not do it, and raises nothing."""
        state = load(self.folder)
        entry = state["running"][self.name][self._key(list(positional), fields)]
        for field, value in fields.items():
            if state["refuses"] and re.search(state["refuses"], field):
                print(f"Error: {field}: Invalid arguments")
                return -1
            assert field in self.form.columns
            entry[field] = [value] * len(entry[field]) if isinstance(entry[field], list) else value
        save(self.folder, state)
        return 0

    def _key(self, positional: list[Any], fields: dict[str, Any]) -> str:
        return ",".join(str(positional.pop(0) if positional else fields.pop(field)) for field in self.form.key)


class Node:
    """What a script reaches by names and dots."""

    def __init__(self, folder: Path, path: str) -> None:
        self._folder, self._path = folder, path

    def __getattr__(self, name: str) -> "Node | Table":
        path = f"{self._path}.{name}".lstrip(".")
        if path in FORMS:
            return Table(self._folder, path)
        if not any(table.startswith(f"{path}.") for table in FORMS):
            raise AttributeError(f"'BFNode' object has no attribute '{name}'")
        return Node(self._folder, path)


def run(folder: Path, script: Path) -> None:
    """Names are a function's: neither functions nor comprehensions in the script see them."""
    try:
        exec(script.read_text(), {"bfrt": Node(folder, "")}, {})
    except Exception:
        print(traceback.format_exc())
