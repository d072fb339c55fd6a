# SPDX-License-Identifier: Apache-2.0
"""Reader of the 64-bit little-endian ELF object files that clang makes for eBPF (elf(5))."""

import struct
from typing import NamedTuple

from roundabout.core.binary import DamagedError, refuse_damage

MAGIC = b"\x7fELF\x02\x01"
SYMBOLS, NOT_IN_FILE, OBJECT = 2, 8, 1  # section types SHT_SYMTAB and SHT_NOBITS; symbol type STT_OBJECT


class Section(NamedTuple):
    """A section: `at` and `size` are bytes in the file, `link` is the index of a related section."""

    name: str
    type: int
    at: int
    size: int
    link: int


class Elf:
    """The sections and variables of one object file. Reading a damaged file raises DamagedError."""

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
        """Return the bytes of the section `name`, or None if the file has no such section."""
        found = next((each for each in self.sections if each.name == name), None)
        return None if found is None else self._content(found)

    @refuse_damage("ELF")
    def variables(self, section: str) -> dict[str, int]:
        """Return the offset in the file, in bytes, of each variable in `section`, by the variable's name."""
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
