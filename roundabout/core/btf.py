# SPDX-License-Identifier: Apache-2.0
"""Reader of BTF, a kernel's or a program's description of its own types (Documentation/bpf/btf.rst)."""

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from roundabout.core.binary import DamagedError, refuse_damage

KERNEL_BTF = Path("/sys/kernel/btf/vmlinux")
"""Path of the running kernel's BTF. The file is missing if the kernel was built without CONFIG_DEBUG_INFO_BTF."""
MAGIC = 0xEB9F
ARRAY, STRUCT, UNION, FUNCTION, FUNCTION_PROTOTYPE = 3, 4, 5, 12, 13
SAME = (8, 9, 10, 11, 18)  # kinds that only wrap another type: typedef, volatile, const, restrict, type tag
EXTERN = 2  # linkage of a function that is defined outside the program
# Bytes that follow a type's header, by kind: FIXED ones, and PER_MEMBER ones for each of its `count` members.
FIXED = {1: 4, 3: 12, 14: 4, 17: 4}
PER_MEMBER = {4: 12, 5: 12, 6: 8, 13: 8, 15: 12, 19: 12}
# Kinds of CO-RE relocations (libbpf's relo_core.h) that read or write a field. The others only test if it exists.
FIELD_ACCESS = (0, 1, 3, 4, 5)
RECORD_BYTES = 16  # least size of a relocation (bpf_core_relo); later versions may append fields
FLAVOUR = "___"  # separates a structure's name from a suffix that distinguishes its versions


class _Type(NamedTuple):
    name_at: int
    kind: int
    members: int
    refers_to: int
    members_at: int


class Member(NamedTuple):
    """A member of a structure. `name` is empty for an anonymous structure or union."""

    name: str
    type: int
    offset_bits: int


class Field(NamedTuple):
    """A field of a structure, by its path through nested members: `sock`, (`__sk_common`, `skc_net`)."""

    structure: str
    path: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join((self.structure, *self.path))


class Btf:
    """The types in one BTF blob. The constructor and methods raise DamagedError if the blob is damaged."""

    @refuse_damage("BTF")
    def __init__(self, blob: bytes) -> None:
        (magic,) = struct.unpack_from("<H", blob)
        if magic != MAGIC:
            raise DamagedError(f"found magic {magic:#x}, expected {MAGIC:#x}, which BTF of this byte order begins with")
        _, _, _, header, types_at, types_bytes, names_at, names_bytes = struct.unpack_from("<HBBIIIII", blob)
        if max(header + types_at + types_bytes, header + names_at + names_bytes) > len(blob):
            raise DamagedError(f"found {len(blob)} bytes of BTF, expected more, as its header says")
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
        """Return True if a type, member or function is called `name`."""
        return self._name_at(name) is not None

    @refuse_damage("BTF")
    def has_function(self, name: str) -> bool:
        """Return True if the blob describes a function called `name`."""
        return any(True for _ in self._called(name, FUNCTION))

    @refuse_damage("BTF")
    def has_field(self, field: Field) -> bool:
        """Return True if `field` exists in its structure, directly or inside anonymous members."""
        return any(self._contains_path(each, field.path) for each in self._called(field.structure, STRUCT))

    @refuse_damage("BTF")
    def outside_functions(self) -> list[str]:
        """Return the names of functions that a program calls but does not define, sorted."""
        return sorted(
            self.name(each.name_at) for each in self._types if each.kind == FUNCTION and each.members == EXTERN
        )

    @refuse_damage("BTF")
    def member(self, structure: str, name: str) -> Member | None:
        """Return the direct member `name` of a structure, or None if either does not exist."""
        found = (member for each in self._called(structure, STRUCT) for member in self._members(each))
        return next((member for member in found if member.name == name), None)

    @refuse_damage("BTF")
    def fields(self, relocations: bytes) -> list[Field]:
        """Return the structure fields that a program reads or writes. `relocations` is its section .BTF.ext."""
        found = (self._field(type_id, self.name(access)) for type_id, access in _read_accesses(relocations))
        return sorted({each for each in found if each.path})

    @refuse_damage("BTF")
    def callback_arguments(self, structure: str, member: str) -> int | None:
        """Return the number of arguments of the function pointer `member` of `structure`.

        Return None if the member does not exist.
        """
        found = self.member(structure, member)
        return found and self._prototype(found.type).members

    def name(self, at: int) -> str:
        """Return the name that begins at byte `at` of the blob's string section."""
        return self._names[at : self._names.index(b"\0", at)].decode()

    def _name_at(self, name: str) -> int | None:
        found = self._names.find(b"\0" + name.encode() + b"\0")
        return None if found < 0 else found + 1

    def _called(self, name: str, kind: int) -> Iterator[_Type]:
        at = self._name_at(name)
        return (each for each in self._types if each.kind == kind and each.name_at == at)

    def _members(self, of: _Type) -> Iterator[Member]:
        if of.kind in (STRUCT, UNION):
            entries = struct.iter_unpack("<III", self._blob[of.members_at : of.members_at + 12 * of.members])
            for name_at, type_id, offset in entries:
                yield Member(self.name(name_at), type_id, offset & 0xFFFFFF)  # above: the size of a bit field

    def _numbered(self, type_id: int) -> _Type:
        """Return a type by its number, from 1; 0 is void, which has no members."""
        return self._types[type_id - 1] if type_id else _Type(0, 0, 0, 0, 0)

    def _resolve_aliases(self, type_id: int) -> _Type:
        """Return the type behind other names for it."""
        found = self._numbered(type_id)
        return self._resolve_aliases(found.refers_to) if found.kind in SAME else found

    def _contains_path(self, of: _Type, path: Sequence[str]) -> bool:
        if not path:
            return True
        if of.kind == ARRAY:
            (element,) = struct.unpack_from("<I", self._blob, of.members_at)
            return self._contains_path(self._resolve_aliases(element), path)
        return any(
            self._contains_path(self._resolve_aliases(each.type), path[1:] if each.name else path)
            for each in self._members(of)
            if each.name in ("", path[0])
        )

    def _field(self, type_id: int, access: str) -> Field:
        """Return the member of an access such as `0:5:2`: the sixth member of the type, and the third of that."""
        here = self._resolve_aliases(type_id)
        structure, path = self.name(here.name_at).partition(FLAVOUR)[0], []
        for word in access.split(":")[1:]:
            if here.kind == ARRAY:
                (element,) = struct.unpack_from("<I", self._blob, here.members_at)
                here = self._resolve_aliases(element)
                continue
            member = list(self._members(here))[int(word)]
            path += [member.name] if member.name else []
            here = self._resolve_aliases(member.type)
        return Field(structure, tuple(path))

    def _prototype(self, type_id: int) -> _Type:
        found = self._numbered(type_id)
        return found if found.kind == FUNCTION_PROTOTYPE else self._prototype(found.refers_to)


def _read_accesses(blob: bytes) -> Iterator[tuple[int, int]]:
    """Yield the type and the place of the access among names, for each CO-RE relocation that needs a field."""
    magic, _, _, header = struct.unpack_from("<HBBI", blob)
    if magic != MAGIC:
        raise DamagedError(f"found magic {magic:#x} in .BTF.ext, expected {MAGIC:#x}")
    if header < 32:  # a compiler without CO-RE wrote it
        return
    at, size = struct.unpack_from("<II", blob, 24)
    at, end = header + at, header + at + size
    if size == 0:
        return
    (record_bytes,) = struct.unpack_from("<I", blob, at)
    if record_bytes < RECORD_BYTES:
        raise DamagedError(f"found relocations of {record_bytes} bytes each, expected {RECORD_BYTES} at least")
    at += 4
    while at < end:
        _, count = struct.unpack_from("<II", blob, at)
        at += 8
        for _ in range(count):
            _, type_id, access, kind = struct.unpack_from("<IIII", blob, at)
            at += record_bytes
            if kind in FIELD_ACCESS:
                yield type_id, access
