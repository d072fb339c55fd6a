# SPDX-License-Identifier: Apache-2.0
"""Reads object files as clang makes them for eBPF: ELF of 64 bits, little-endian (elf(5))."""

import struct
from typing import NamedTuple

MAGIC = b"\x7fELF\x02\x01"
SYMBOLS, OBJECT = 2, 1  # a section's type; a symbol's


class Section(NamedTuple):
    """A part of the file: where it lies, and the section that it refers to."""

    name: str
    type: int
    at: int
    size: int
    link: int


class Elf:
    """The sections of one object file, and the variables in them."""

    def __init__(self, blob: bytes) -> None:
        if not blob.startswith(MAGIC):
            raise ValueError(f"found {blob[:6]!r}, expected ELF of 64 bits")
        self._blob = blob
        (at,) = struct.unpack_from("<Q", blob, 0x28)
        size, count, names = struct.unpack_from("<HHH", blob, 0x3A)
        headers = [struct.unpack_from("<IIQQQQI", blob, at + size * number) for number in range(count)]
        names_at = headers[names][4]
        self.sections = [Section(self._text(names_at + each[0]), each[1], *each[4:7]) for each in headers]

    def section(self, name: str) -> bytes | None:
        """What a section holds; None if there is none of that name."""
        found = next((each for each in self.sections if each.name == name), None)
        return found and self._blob[found.at : found.at + found.size]

    def variables(self, section: str) -> dict[str, int]:
        """The variables of a section by name: where in the file each begins."""
        found: dict[str, int] = {}
        for table in (each for each in self.sections if each.type == SYMBOLS):
            names_at = self.sections[table.link].at
            for name, info, _, number, value, _ in struct.iter_unpack(
                "<IBBHQQ", self._blob[table.at : table.at + table.size]
            ):
                if info & 0xF == OBJECT and number < len(self.sections) and self.sections[number].name == section:
                    found[self._text(names_at + name)] = self.sections[number].at + value
        return found

    def _text(self, at: int) -> str:
        return self._blob[at : self._blob.index(b"\0", at)].decode()
