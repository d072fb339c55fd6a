# SPDX-License-Identifier: Apache-2.0
"""Reads BTF, the kernel's description of its own types (Documentation/bpf/btf.rst), as far as `doctor` needs it."""

import struct
from collections.abc import Iterator
from typing import NamedTuple

MAGIC = 0xEB9F
POINTER, STRUCT, FUNCTION_PROTOTYPE = 2, 4, 13
# Bytes after a type's header: fixed, or for each of its `count` members.
FIXED = {1: 4, 3: 12, 14: 4, 17: 4}
PER_MEMBER = {4: 12, 5: 12, 6: 8, 13: 8, 15: 12, 19: 12}


class _Type(NamedTuple):
    name_at: int
    kind: int
    members: int
    refers_to: int
    members_at: int


class Btf:
    """The types in one BTF blob."""

    def __init__(self, blob: bytes) -> None:
        magic, _, _, header, types_at, types_bytes, names_at, names_bytes = struct.unpack_from("<HBBIIIII", blob)
        if magic != MAGIC:
            raise ValueError(f"found magic {magic:#x}, expected {MAGIC:#x}")
        self._blob = blob
        self._names = blob[header + names_at : header + names_at + names_bytes]
        self._types = list(self._walk(header + types_at, header + types_at + types_bytes))

    def _walk(self, at: int, end: int) -> Iterator[_Type]:
        while at < end:
            name_at, info, refers_to = struct.unpack_from("<III", self._blob, at)
            kind, count = info >> 24 & 0x1F, info & 0xFFFF
            yield _Type(name_at, kind, count, refers_to, at + 12)
            at += 12 + FIXED.get(kind, 0) + PER_MEMBER.get(kind, 0) * count

    def has_name(self, name: str) -> bool:
        """Whether a type, member or function is called `name`."""
        return self._name_at(name) is not None

    def _name_at(self, name: str) -> int | None:
        found = self._names.find(b"\0" + name.encode() + b"\0")
        return None if found < 0 else found + 1

    def callback_arguments(self, structure: str, member: str) -> int | None:
        """How many arguments the function at `member` of `structure` takes; None if there is no such member."""
        structure_at, member_at = self._name_at(structure), self._name_at(member)
        for each in self._types:
            if each.kind == STRUCT and each.name_at == structure_at:
                members = struct.iter_unpack("<III", self._blob[each.members_at : each.members_at + 12 * each.members])
                for name_at, type_id, _ in members:
                    if name_at == member_at:
                        return self._prototype(type_id).members
        return None

    def _prototype(self, type_id: int) -> _Type:
        found = self._types[type_id - 1]  # numbers begin at 1; 0 is void
        return found if found.kind == FUNCTION_PROTOTYPE else self._prototype(found.refers_to)
