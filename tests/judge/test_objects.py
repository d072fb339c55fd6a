# SPDX-License-Identifier: Apache-2.0
"""Object files with any bytes in them: they are read, or refused with one message."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from roundabout.checks.judge.kernel_requirements import check_kernels
from roundabout.core.binary import DamagedError
from roundabout.core.btf import Btf
from roundabout.core.elf import Elf
from roundabout.core.errors import RoundaboutError
from roundabout.runner import transports
from roundabout.spec.transports import registry

pytestmark = pytest.mark.unit

OBJECT = (transports.BUILT / "dcqcn.bpf.o").read_bytes()
TYPES = Elf(OBJECT).section(".BTF") or b""
EXAMPLES = 2000 if "FUZZ_SECONDS" in os.environ else 150
DECLARED = registry.find_declaration("dcqcn")
assert DECLARED
PROGRAM = DECLARED.program


WORDS = st.one_of(st.binary(min_size=1, max_size=8), st.sampled_from([b"\0" * 4, b"\xff" * 4, b"\xff" * 8]))
EDITS = st.lists(st.tuples(st.one_of(st.integers(0, 63), st.integers(0, len(OBJECT) - 1)), WORDS), max_size=6)
CUTS = st.one_of(st.none(), st.integers(0, len(OBJECT)))


def changed(whole: bytes, edits: list[tuple[int, bytes]], cut: int | None) -> bytes:
    """Return `whole` with some bytes changed, and perhaps cut short."""
    blob = bytearray(whole)
    for at, word in edits:
        place = at % (len(whole) - len(word))
        blob[place : place + len(word)] = word
    return bytes(blob[:cut])


@given(edits=EDITS, cut=CUTS)
@settings(max_examples=EXAMPLES)
def test_an_object_of_any_bytes_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, edits: list[tuple[int, bytes]], cut: int | None
) -> None:
    path = tmp_path_factory.getbasetemp() / "mutated.bpf.o"
    path.write_bytes(blob := changed(OBJECT, edits, cut))
    for read, named in (
        (lambda: check_kernels(path, ()), path),
        (lambda: transports.rename_operations(DECLARED, path), PROGRAM),
    ):
        try:
            read()
        except RoundaboutError as error:
            if str(named) not in error.message or "\n" in error.message:
                pytest.fail(error.message)
    assert len(path.read_bytes()) == len(blob)


@given(edits=EDITS, cut=CUTS)
@settings(max_examples=EXAMPLES)
def test_types_of_any_bytes_are_read_or_damaged(edits: list[tuple[int, bytes]], cut: int | None) -> None:
    relocations = Elf(OBJECT).section(".BTF.ext") or b""
    with suppress(DamagedError):
        types = Btf(changed(TYPES, edits, cut))
        types.fields(relocations)
        types.outside_functions()
        types.member("tcp_congestion_ops", "name")
        types.callback_arguments("tcp_congestion_ops", "init")


@pytest.mark.parametrize("size", [0, 4, 16, 63, 64])
def test_an_object_that_is_cut_short_is_refused(tmp_path: Path, size: int) -> None:
    (tmp_path / "cut.bpf.o").write_bytes(OBJECT[:size])
    with pytest.raises(RoundaboutError, match="cut.bpf.o: found .*, expected a program that clang built with -g"):
        check_kernels(tmp_path / "cut.bpf.o", ())


def test_an_object_of_32_bits_or_another_byte_order_is_refused() -> None:
    for at in (4, 5):
        with pytest.raises(DamagedError, match="expected ELF of 64 bits, little-endian"):
            Elf(OBJECT[:at] + b"\x03" + OBJECT[at + 1 :])


def test_a_program_of_this_machine_is_no_congestion_control(tmp_path: Path) -> None:
    shutil.copy("/bin/true", tmp_path / "true.bpf.o")
    with pytest.raises(RoundaboutError, match="found no struct tcp_congestion_ops"):
        transports.rename_operations(DECLARED, tmp_path / "true.bpf.o")
