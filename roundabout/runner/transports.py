# SPDX-License-Identifier: Apache-2.0
"""Programs of transports. The tree's are built with the tree, those of plugins at the start of a run."""

import hashlib
import json
import os
import shutil
import subprocess
import sysconfig
from collections.abc import Iterable
from pathlib import Path

from roundabout.core.binary import DamagedError
from roundabout.core.btf import Btf, Member
from roundabout.core.elf import Elf
from roundabout.core.errors import RoundaboutError
from roundabout.core.paths import IS_CHECKOUT, ROOT
from roundabout.spec.transports import Declaration, Transport, registry
from roundabout.store import files, scratch

BUILT, OUTSIDE = ROOT / "build/bpf", ROOT / "build/outside"
TOOL = ROOT / "build/bin/transport"
# Suffixes of object files with their compiler options, because the arguments of cong_control differ between kernels.
VARIANTS = {".bpf.o": [], ".before_6_10.bpf.o": ["-DCONG_CONTROL_BEFORE_6_10"]}
SHOWN_LINES = 20
OPERATIONS, REGISTERED = "tcp_congestion_ops", ".struct_ops"  # structure of a congestion control, and its ELF section
NAME_BYTES, NON_RESTRICTED = 16, 1  # size of its name; flag that allows its use outside the initial network namespace


def object_folder(transport: Transport) -> Path | None:
    """Return the folder of a transport's eBPF objects on the controller, or None for Linux's own transports."""
    found = transport.declaration
    if found is None:
        return None
    return OUTSIDE / found.name if registry.is_plugin(found) else BUILT


def build_plugins(transports: Iterable[Transport]) -> dict[str, str]:
    """Build those of the transports that are plugins, and return the SHA-256 of their objects, by path.

    Raises RoundaboutError if a transport does not build, or if its program differs from its declaration.
    """
    found = (each.declaration for each in transports)
    built = [path for each in found if each and registry.is_plugin(each) for path in build_transport(each)]
    return {str(path.relative_to(ROOT)): hashlib.sha256(path.read_bytes()).hexdigest() for path in built}


def build_transport(found: Declaration) -> list[Path]:
    """Build a plugin's transport for each of VARIANTS, and return the objects' paths. Raises RoundaboutError."""
    folder = files.make_directory(OUTSIDE / found.name)
    paths = []
    for suffix, defines in VARIANTS.items():
        paths.append(folder / f"{found.name}{suffix}")
        with scratch.folder("transport") as fresh:
            path = fresh / paths[-1].name
            _compile(found.program, path, defines)
            rename_operations(found, path)
            _check_declarations(found, path)
            with files.replace_file(paths[-1]) as built:  # a reader has the old object or the new one
                built.write(path.read_bytes())
    return paths


def _compile(program: Path, path: Path, defines: list[str]) -> None:
    """Compile a program as cmake/BpfObject.cmake does, but without style warnings.

    The headers of glibc require the machine's architecture as a macro.
    """
    clang, strip = shutil.which("clang"), _strip()
    if not clang or not strip:
        raise RoundaboutError(
            f"found no {'llvm-strip' if clang else 'clang'}, expected it to build {program}",
            "run ./bootstrap" if IS_CHECKOUT else "apt-get install clang llvm libbpf-dev",
        )
    flags = [*(ROOT / "cmake/bpf_flags.txt").read_text().split(), "-Wno-error", f"-D__{os.uname().machine}__"]
    multiarch = ["-idirafter", f"/usr/include/{sysconfig.get_config_var('MULTIARCH')}"]
    include = ["-I", str(registry.TREE / "common"), "-I", str(program.parent)]
    command = [clang, *flags, *multiarch, *include, *defines, "-c", program.name, "-o", str(path)]
    done = subprocess.run(command, cwd=program.parent, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RoundaboutError(f"{program} does not build", _first_lines(done.stderr))
    subprocess.run([strip, "-g", str(path)], check=True)  # drops DWARF, keeps BTF


def _strip() -> str | None:
    names = ("llvm-strip", *(f"llvm-strip-{version}" for version in (14, 15, 16, 18)))
    return next((path for name in names if (path := shutil.which(name))), None)


def rename_operations(found: Declaration, path: Path) -> None:
    """Patch the object file `path`: set the congestion control's name, and allow its use in network namespaces.

    Raises RoundaboutError if the object lacks a congestion control.
    """
    variables, name, flags = _operations(found.program, path.read_bytes())
    if not variables or not name or not flags:
        lacks = f"struct {OPERATIONS}" if not variables else f"{OPERATIONS}.{'flags' if name else 'name'}"
        raise RoundaboutError(
            f'{found.program}: found no {lacks}, expected one with name and flags in SEC("{REGISTERED}")'
        )
    blob = bytearray(path.read_bytes())
    for at in variables.values():
        name_at, flags_at = at + name.offset_bits // 8, at + flags.offset_bits // 8
        if max(name_at + NAME_BYTES, flags_at + 1) > len(blob):
            raise RoundaboutError(f"{found.program}: its object file is damaged: {OPERATIONS} reaches out of it")
        blob[name_at : name_at + NAME_BYTES] = registry.kernel_name(found.name).encode().ljust(NAME_BYTES, b"\0")
        blob[flags_at] |= NON_RESTRICTED
    path.write_bytes(blob)


def _operations(program: Path, blob: bytes) -> tuple[dict[str, int], Member | None, Member | None]:
    """Return where an object has its congestion controls, and where these have their name and flags.

    Raises:
        RoundaboutError: the object is damaged.
    """
    try:
        elf = Elf(blob)
        described = elf.section(".BTF")
        if not described:  # an empty program has no types
            return {}, None, None
        types = Btf(described)
        return elf.variables(REGISTERED), types.member(OPERATIONS, "name"), types.member(OPERATIONS, "flags")
    except DamagedError as error:
        raise RoundaboutError(f"{program}: its object file: {error}") from error


def _check_declarations(found: Declaration, path: Path) -> None:
    """Refuse a program whose maps differ from its source's declaration."""
    done = subprocess.run([str(TOOL), "describe", str(path)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RoundaboutError(f"{found.program}: {done.stderr.removeprefix('transport: ').strip()}")
    described = json.loads(done.stdout)
    declared = {
        "params": [each.name for each in found.parameters],
        "counters": [*(each.name for each in found.counters), *(each.name for each in found.derived)],
    }
    for where, key in (("params", "parameters"), ("counters", "counters")):
        names = [each["name"] for each in described[key]]
        if sorted(names) != sorted(declared[where]):
            raise RoundaboutError(
                f"{found.program}: found {', '.join(names) or 'nothing'} in its map `{where}`, "
                f"expected what is declared: {', '.join(declared[where]) or 'nothing'}",
                f"each structure with declarations is a map's: PER_HOST({where}, struct {found.name}_{where});",
            )


def _first_lines(said: str) -> str:
    lines = said.splitlines()
    more = [f"... and {len(lines) - SHOWN_LINES} more lines"] if len(lines) > SHOWN_LINES else []
    return "\n".join([*lines[:SHOWN_LINES], *more])
