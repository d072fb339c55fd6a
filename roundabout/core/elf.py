# SPDX-License-Identifier: Apache-2.0
"""Reader of object files as clang makes them for eBPF: ELF of 64 bits, little-endian (elf(5))."""

import struct
from typing import NamedTuple

from roundabout.core.binary import DamagedError, refuse_damage

MAGIC = b"\x7fELF\x02\x01"
SYMBOLS, NOT_IN_FILE, OBJECT = 2, 8, 1  # a section's types; a symbol's


class Section(NamedTuple):
    """A part of the file: its place, and the section that it refers to."""

    name: str
    type: int
    at: int
    size: int
    link: int


class Elf:
    """The sections of one object file, and the variables in them. Reading a damaged one raises DamagedError."""

    @refuse_damage("ELF")
    def __init__(self, blob: bytes) -> None:
        if not blob.startswith(MAGIC):
            raise DamagedError(f"found {blob[:6]!r} at its beginning, expected ELF of 64 bits, little-endian")
        self._blob = blob
        (at,) = struct.unpack_from("<Q", blob, 0x28)
        size, count, names = struct.unpack_from("<HHH", blob, 0x3A)
        headers = [struct.unpack_from("<IIQQQQI", blob, at + size * number) for number in range(count)]
        names_at = headers[names][4]
        self.sections = [Section(self._text(names_at + each[0]), each[1], *each[4:7]) for each in headers]

    @refuse_damage("ELF")
    def section(self, name: str) -> bytes | None:
        """Return the content of a section; None if there is none of that name."""
        found = next((each for each in self.sections if each.name == name), None)
        return None if found is None else self._content(found)

    @refuse_damage("ELF")
    def variables(self, section: str) -> dict[str, int]:
        """Return the variables of a section by name: each one's place in the file."""
        found: dict[str, int] = {}
        for table in (each for each in self.sections if each.type == SYMBOLS):
            names_at = self.sections[table.link].at
            for name, info, _, number, value, size in struct.iter_unpack("<IBBHQQ", self._content(table)):
                if info & 0xF == OBJECT and number < len(self.sections) and self.sections[number].name == section:
                    if value + size > len(self._content(self.sections[number])):
                        raise DamagedError(f"found a variable that reaches out of the section {section}")
                    found[self._text(names_at + name)] = self.sections[number].at + value
        return found

    def _content(self, section: Section) -> bytes:
        if section.type == NOT_IN_FILE:
            return b""
        held = self._blob[section.at : section.at + section.size]
        if len(held) < section.size:
            raise DamagedError(f"found {len(held)} bytes of the section {section.name}, expected {section.size}")
        return held

    def _text(self, at: int) -> str:
        return self._blob[at : self._blob.index(b"\0", at)].decode()
