# SPDX-License-Identifier: Apache-2.0
"""What an eBPF program needs of a kernel, read from the program, and whether a kernel has it, by its BTF."""

from dataclasses import dataclass
from pathlib import Path

from roundabout.btf import Btf
from roundabout.elf import Elf
from roundabout.errors import UsageError

RUNNING = Path("/sys/kernel/btf/vmlinux")


@dataclass(frozen=True)
class Needs:
    """Functions that it calls, and members of structures that it reads or writes, as `sock.sk_pacing_rate`."""

    functions: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()


@dataclass(frozen=True)
class Kernel:
    """A kernel, by its BTF, and what it lacks of a program's needs. Branches may do without."""

    name: str
    lacks: tuple[str, ...]


def needs_of(program: Path, kernels: tuple[Path, ...] = (RUNNING,)) -> tuple[Needs, tuple[Kernel, ...]]:
    """What a built program needs, and how each kernel answers to that. Raises UsageError for what is no BTF."""
    elf = Elf(program.read_bytes())
    types = Btf(elf.section(".BTF") or b"")
    functions, fields = types.outside_functions(), types.fields(elf.section(".BTF.ext") or b"")
    answers = []
    for path in kernels:
        kernel = _read(path)
        lacks = [f"{name}()" for name in functions if not kernel.has_function(name)]
        lacks += [str(field) for field in fields if not kernel.has_field(field)]
        answers.append(Kernel("this one" if path == RUNNING else path.name, tuple(lacks)))
    return Needs(tuple(functions), tuple(map(str, fields))), tuple(answers)


def _read(path: Path) -> Btf:
    try:
        return Btf(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}, expected a kernel's BTF, as {RUNNING} is") from error
    except (ValueError, LookupError) as error:
        raise UsageError(f"{path}: {error}, expected a kernel's BTF, as {RUNNING} is") from error
