# SPDX-License-Identifier: Apache-2.0
"""A Tofino's tables as `bfshell -b` shows them to a script. Constructed from open-p4studio 9.13.4.

Tables, keys, fields and choices: bf_rt_tm_tf1.json and bf_rt_port_tf1.json. How they are called, and that a refused
write raises while a read of nothing gives -1: bfrtcli.py and bfrtTable.py. Groups of PFC: bf_rt_tm_table_impl_ppg.cpp.
"""

import re
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from state import load, save


class Form(NamedTuple):
    """A table's key fields, what its others are called when they are read, and which are never written."""

    key: tuple[str, ...]
    columns: dict[str, bytes]
    fixed: tuple[str, ...] = ()
    choices: dict[str, tuple[str, ...]] = {}  # noqa: RUF012 - read only


def plain(*fields: str) -> dict[str, bytes]:
    return {field: field.encode() for field in fields}


EGRESS = "roundabout.pipe.Egress"
MODES = ("NONE", "PFC", "PAUSE")
CLASSES = 8
# Tables per pipe have the pipe in their key here, and take it as an argument of its own.
FORMS = {
    f"{EGRESS}.ecn_min_cells": Form(("REGISTER_INDEX",), {"f1": b"Egress.ecn_min_cells.f1"}),
    f"{EGRESS}.ecn_max_cells": Form(("REGISTER_INDEX",), {"f1": b"Egress.ecn_max_cells.f1"}),
    "port.port_hdl_info": Form(("CONN_ID", "CHNL_ID"), {"DEV_PORT": b"$DEV_PORT"}, ("DEV_PORT",)),
    "port.port": Form(
        ("DEV_PORT",),
        {
            field: f"${field}".encode()
            for field in ("TX_PFC_EN_MAP", "RX_PFC_EN_MAP", "SPEED", "TX_MTU", "RX_MTU", "FEC", "AUTO_NEGOTIATION")
        },
    ),
    "tf1.tm.port.flowcontrol": Form(
        ("dev_port",), plain("mode_tx", "mode_rx", "cos_to_icos"), ("mode_rx",), {"mode_tx": MODES, "mode_rx": MODES}
    ),
    "tf1.tm.port.cfg": Form(("dev_port",), plain("pg_id", "egress_qid_queues"), ("pg_id", "egress_qid_queues")),
    "tf1.tm.port.dpg": Form(("dev_port",), plain("icos_ppg_map"), ("icos_ppg_map",)),
    "tf1.tm.queue.cfg": Form(("pipe", "pg_id", "pg_queue"), plain("pfc_cos")),
    "tf1.tm.queue.sched_cfg": Form(
        ("pipe", "pg_id", "pg_queue"),
        plain("min_priority", "max_priority"),
        choices=dict.fromkeys(("min_priority", "max_priority"), ("LOW", *"01234567", "HIGH")),
    ),
    "tf1.tm.ppg.cfg": Form(("pipe", "ppg_id"), plain("dev_port", "pfc_enable", "pfc_skid_max_cells")),
}


class BfRtTableError(Exception):
    """What bfrtTable.py raises."""


class Entry(NamedTuple):
    data: dict[bytes, Any]


class Table:
    """One table of the switch whose state is in `folder`."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name, self.form = folder, name, FORMS[name]

    def get(self, *positional: Any, print_ents: bool = True, **fields: Any) -> Entry | int:
        assert not print_ents
        key = self._key(list(positional), fields)
        entry = self._entries(load(self.folder)).get(key)
        return -1 if entry is None else Entry({name: entry[field] for field, name in self.form.columns.items()})

    def mod(self, *positional: Any, **fields: Any) -> None:
        if self.name.endswith("ppg.cfg"):  # its entries have actions
            raise AttributeError("'BFLeaf' object has no attribute 'mod'")
        self._write(self._key(list(positional), fields), fields)

    def _write(self, key: str, fields: dict[str, Any]) -> None:
        state = load(self.folder)
        entry = self._entries(state)[key]
        for field, value in fields.items():
            if field in self.form.fixed:
                print(f"Skipping input for read only field: {field}")
                continue
            wrong = value not in self.form.choices.get(field, (value,)) or field not in self.form.columns
            if wrong or (state["refuses"] and re.search(state["refuses"], field)):
                raise BfRtTableError(f"Error: table_entry_mod failed on table {self.name}. [Invalid arguments]")
            registers = isinstance(entry[field], list) and not isinstance(value, list)
            entry[field] = [value] * len(entry[field]) if registers else value
        save(self.folder, state)

    def _entries(self, state: dict[str, Any]) -> dict[str, Any]:
        if not self.name.endswith("port.dpg"):
            entries: dict[str, Any] = state["running"][self.name]
            return entries
        groups = state["running"]["tf1.tm.ppg.cfg"]
        return {
            port: {"icos_ppg_map": [next(holders(groups, int(port), each), 0) for each in range(CLASSES)]}
            for port in state["running"]["port.port"]
        }

    def _key(self, positional: list[Any], fields: dict[str, Any]) -> str:
        if "pipe" in self.form.key and "pipe" not in fields:
            raise BfRtTableError(f"Error: {self.name}: PIPE_ALL is not allowed. [Invalid arguments]")
        if "pipe" not in self.form.key:
            fields.pop("pipe", None)
        return ",".join(str(positional.pop(0) if positional else fields.pop(field)) for field in self.form.key)


def holders(groups: dict[str, Any], port: int, icos: int) -> Iterator[int]:
    """Which group has a class of a port."""
    return (int(key.split(",")[1]) for key, each in groups.items() if each["dev_port"] == port and icos in each["icos"])


class Groups(Table):
    """`ppg.cfg`: entries are allocated for a port, of a pipe with as many."""

    def add_with_dev_port(self, *, dev_port: int, **fields: Any) -> None:
        key = self._key([], fields)
        state = load(self.folder)
        groups = self._entries(state)
        icos = [int(field[-1]) for field in list(fields) if field.startswith("icos_") and fields.pop(field)]
        taken = [each for each in icos if any(holders(groups, dev_port, each))]
        if key in groups or taken or int(key.split(",")[0]) != dev_port >> 7 or key.endswith(",0"):
            raise BfRtTableError(f"Error: table_entry_add failed on table {self.name}. [Invalid arguments]")
        groups[key] = {"dev_port": dev_port, "pfc_enable": False, "pfc_skid_max_cells": 0, "icos": icos}
        save(self.folder, state)
        self._write(key, fields)

    def mod_with_dev_port(self, *, dev_port: int, **fields: Any) -> None:
        key = self._key([], fields)
        assert self._entries(load(self.folder))[key]["dev_port"] == dev_port
        self._write(key, fields)

    def delete(self, **fields: Any) -> None:
        """Gives its classes back to the port's default group."""
        state = load(self.folder)
        del self._entries(state)[self._key([], fields)]
        save(self.folder, state)


class Driver:
    """The part of libdriver that a script may call."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get_driver(self) -> "Driver":
        return self

    @property
    def bf_drv_get_version(self) -> Any:
        release = load(self.folder)["release"]

        def version() -> bytes:
            return str(release).encode()

        return version


class Node:
    """What a script reaches by names and dots."""

    def __init__(self, folder: Path, path: str) -> None:
        self._folder, self._path, self._cintf = folder, path, Driver(folder)

    def __getattr__(self, name: str) -> "Node | Table":
        path = f"{self._path}.{name}".lstrip(".")
        if path in FORMS:
            return (Groups if path.endswith("ppg.cfg") else Table)(self._folder, path)
        if not any(table.startswith(f"{path}.") for table in FORMS):
            raise AttributeError(f"'BFNode' object has no attribute '{name}'")
        return Node(self._folder, path)


def run(folder: Path, script: Path) -> None:
    """Names are a function's: neither functions nor comprehensions in the script see them."""
    try:
        exec(script.read_text(), {"bfrt": Node(folder, "")}, {})
    except Exception:
        print(traceback.format_exc())
