# SPDX-License-Identifier: Apache-2.0
"""Requirements of an eBPF program on the kernel, and their check against kernels' BTF."""

from dataclasses import dataclass
from pathlib import Path

from roundabout.core.binary import DamagedError
from roundabout.core.btf import Btf, Field
from roundabout.core.elf import MAGIC, Elf
from roundabout.core.errors import UsageError

RUNNING = Path("/sys/kernel/btf/vmlinux")
BUILD_TYPES = "build the kernel with CONFIG_DEBUG_INFO_BTF=y"


@dataclass(frozen=True)
class Requirements:
    """The kernel functions that a program calls, and the fields that it accesses, such as `sock.sk_pacing_rate`."""

    functions: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()


@dataclass(frozen=True)
class KernelCheck:
    """A kernel and the requirements that its BTF lacks. A program may still run if its branches avoid them."""

    name: str
    lacks: tuple[str, ...]


def check_kernels(
    program: Path, kernels: tuple[Path, ...] = (RUNNING,)
) -> tuple[Requirements, tuple[KernelCheck, ...]]:
    """Return the requirements of a built program, and a check for the BTF file of each of `kernels`.

    Raises UsageError if a file has no BTF.
    """
    functions, fields = _read_requirements(program)
    answers = []
    for path in kernels:
        kernel = _read(path)
        lacks = [f"{name}()" for name in functions if not kernel.has_function(name)]
        lacks += [str(field) for field in fields if not kernel.has_field(field)]
        answers.append(KernelCheck("this one" if path == RUNNING else path.name, tuple(lacks)))
    return Requirements(tuple(functions), tuple(map(str, fields))), tuple(answers)


def _read_requirements(program: Path) -> tuple[list[str], list[Field]]:
    try:
        elf = Elf(program.read_bytes())
        types, relocations = (elf.section(name) for name in (".BTF", ".BTF.ext"))
        if not types:
            return [], []
        found = Btf(types)
        return found.outside_functions(), found.fields(relocations) if relocations else []
    except DamagedError as error:
        raise UsageError(f"{program}: {error}, expected a program that clang built with -g") from error


def _read(path: Path) -> Btf:
    """Return a kernel's types, from BTF as /sys has it or from an ELF file with a section of it."""
    try:
        blob = path.read_bytes()
        types = Elf(blob).section(".BTF") if blob.startswith(MAGIC) else blob
        if not types and blob.startswith(MAGIC):
            raise UsageError(f"{path} has no types (no section .BTF)", f"if it is a kernel, {BUILD_TYPES}")
        return Btf(types or b"")
    except OSError as error:
        if path == RUNNING:
            raise UsageError(f"this kernel has no types: {path}: {error.strerror}", BUILD_TYPES) from error
        raise UsageError(f"{path}: {error.strerror}, expected a kernel's BTF, as {RUNNING} is") from error
    except DamagedError as error:
        raise UsageError(f"{path}: {error}, expected a kernel's BTF, as {RUNNING} is") from error
