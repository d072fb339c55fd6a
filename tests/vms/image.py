# SPDX-License-Identifier: Apache-2.0
"""The disk that all guests begin with: Debian 12 from its packages, and a folder of those that `site.yml` will install.

Guests reach no network but ours, so apt finds in them what it may have to install: /srv/apt.
"""

import hashlib
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from tests.bare import __main__ as bare

VARIABLES = bare.REPOSITORY / "ansible/vars"
DEBIAN = bare.SYSTEMS["debian12"]
BASE_PACKAGES = (
    "systemd-sysv",
    "udev",
    "dbus",
    "openssh-server",
    "python3",
    "iproute2",
    "kmod",
    "zstd",
    "linux-image-amd64",
)
TO_INSTALL = "/srv/apt"
# Run in the new system, between a shell's single quotes. An image has no keys of a host, and no way out.
SETTLE = f"""
set -e
apt-get -q -y install --no-install-recommends --download-only python3-apt PACKAGES
mkdir -p {TO_INSTALL}
mv /var/cache/apt/archives/*.deb {TO_INSTALL}
cd {TO_INSTALL}
apt-ftparchive packages . > Packages
rm -rf /etc/apt/sources.list.d/* /etc/apt/apt.conf.d/99mmdebstrap /etc/ssh/ssh_host_*
echo "deb [trusted=yes] file:{TO_INSTALL} ./" > /etc/apt/sources.list
systemctl enable systemd-networkd.service systemd-network-generator.service
systemctl disable apt-daily.timer apt-daily-upgrade.timer
"""
DISK_BYTES = 3 << 30


@dataclass(frozen=True)
class Image:
    """A folder with a disk, and the kernel and initial RAM disk that are on it."""

    folder: Path

    @property
    def disk(self) -> Path:
        return self.folder / "disk.raw"

    @property
    def kernel(self) -> Path:
        return self.folder / "vmlinuz"

    @property
    def initrd(self) -> Path:
        return self.folder / "initrd.img"

    @property
    def made_from(self) -> Path:
        return self.folder / "made-from"


def packages() -> list[str]:
    """Return the packages that the roles install on a server, with the kernel's own driver and chrony."""
    system, programs = _variables("systems/Debian"), _variables("server_programs")["server_programs"]
    called = [*programs["hosts"], *programs["clock"]["chrony"], *programs["driver"]["inbox"]]
    return [*dict.fromkeys(system["system_packages"][each] for each in called), *system["system_rdma_packages"]]


def _variables(name: str) -> Any:
    return yaml.safe_load((VARIABLES / f"{name}.yml").read_text())


def build(folder: Path) -> Image:
    """The image in `folder`, made where it is missing or was made from something else."""
    image = Image(folder)
    settle = SETTLE.replace("PACKAGES", " ".join(packages()))
    wanted = hashlib.sha256(repr((BASE_PACKAGES, settle, DISK_BYTES)).encode()).hexdigest()
    if image.made_from.exists() and image.made_from.read_text() == wanted:
        return image
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with TemporaryDirectory(dir=folder) as place:
        system = Path(place) / "system"
        acquire = Path(place) / "acquire"
        acquire.write_text(subprocess.run(["apt-config", "dump", "Acquire"], capture_output=True, text=True).stdout)
        # In namespaces: what it mounts must not outlive it.
        bare.isolated(*bootstrap(system, acquire, settle))
        for name, copied in (("vmlinuz", image.kernel), ("initrd.img", image.initrd)):
            shutil.copy(next((system / "boot").glob(f"{name}-*")), copied)
        with image.disk.open("wb") as disk:
            disk.truncate(DISK_BYTES)
        subprocess.run(["mke2fs", "-q", "-t", "ext4", "-d", system, image.disk], check=True)
    image.made_from.write_text(wanted)
    return image


def bootstrap(system: Path, acquire: Path, settle: str) -> list[str]:
    """The command that makes the system in a folder; `acquire` is this machine's way to packages, as apt says it."""
    included = ",".join([*BASE_PACKAGES, "apt-utils"])
    words = ["--mode=root", "--variant=minbase", f"--include={included}", f"--aptopt={acquire}"]
    words.append(f"--customize-hook=chroot \"$1\" sh -c '{settle}'")
    return ["mmdebstrap", *words, DEBIAN.release, str(system), *bare.apt_sources(DEBIAN)]
