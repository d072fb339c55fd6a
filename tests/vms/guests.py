# SPDX-License-Identifier: Apache-2.0
"""Guests: Debian under QEMU, emulated unless KVM is requested, on two bridges of our own network namespace."""

import base64
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from roundabout.core.errors import RoundaboutError
from roundabout.spec import frames
from tests.vms.image import Image

NIC = "roce0"
CONTROL, FABRIC = "control", "fabric"  # bridges: how we reach guests, and the network under test
CONTROLLER = {CONTROL: "10.77.0.254", FABRIC: "10.10.0.254"}
MEMORY_MB = 768
# What links stand for, as the inventory has it; guests that are emulated carry no more, and wake up late.
LINE_RATE_GBPS, PAYLOAD_RATE_GBPS = 50, 43
SCALE, DILATION = 5000, 20
MTU_BYTES = 1500
DEEP_BYTES = 8 << 20  # of a port's queue, which loses nothing
BOOT_S = 900  # emulated, beside others on a slow machine
END_S = 120
ANSWER_TIMEOUT_S = 20  # ssh's handshake takes some seconds where guests are emulated beside others
KEY = "key"
HOST_KEY = "host_key"


@dataclass(frozen=True)
class Guest:
    """One machine; `number` counts from 0."""

    number: int
    folder: Path  # of the run: keys, overlays, consoles

    @property
    def name(self) -> str:
        return f"s{self.number}"

    @property
    def control_address(self) -> str:
        return f"10.77.0.{self.number + 1}"

    @property
    def address(self) -> str:
        """On the network under test."""
        return f"10.10.0.{self.number + 1}"

    @property
    def addresses(self) -> Mapping[str, str]:
        """Its address on each bridge."""
        return {CONTROL: self.control_address, FABRIC: self.address}

    @property
    def overlay(self) -> Path:
        """What the guest's disk has beyond the image."""
        return self.folder / f"{self.name}.qcow2"

    @property
    def console(self) -> Path:
        return self.folder / f"{self.name}.console"

    def tap(self, bridge: str) -> str:
        """Its port in a bridge."""
        return f"{self.name}-{bridge}"

    def mac(self, bridge: str) -> str:
        return f"52:54:00:00:{int(bridge == FABRIC):02x}:{self.number:02x}"

    def command(self, image: Image, accelerator: str) -> list[str]:
        """QEMU's command line."""
        networks = {CONTROL: (CONTROL, self.control_address), FABRIC: (NIC, self.address)}
        kernel = ["root=/dev/vda rw console=ttyS0", f"systemd.hostname={self.name}"]
        # A console to read only; and nothing that is slow has failed.
        kernel += ["systemd.mask=serial-getty@ttyS0.service", f"systemd.default_timeout_start_sec={BOOT_S}"]
        kernel.append(f"systemd.default_device_timeout_sec={BOOT_S}")
        words = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none"]
        words += ["-machine", f"q35,accel={accelerator}", "-cpu", "max", "-smp", "1", "-m", str(MEMORY_MB)]
        words += ["-serial", f"file:{self.console}", "-drive", f"file={self.overlay},if=virtio"]
        words += ["-smbios", f"type=11,value=io.systemd.credential.binary:tmpfiles.extra={self._credential()}"]
        for bridge, (interface, address) in networks.items():
            mac = self.mac(bridge)
            words += ["-netdev", f"tap,id={bridge},ifname={self.tap(bridge)},script=no,downscript=no"]
            words += ["-device", f"virtio-net-pci,netdev={bridge},mac={mac}"]
            kernel += [f"ifname={interface}:{mac}", f"ip={address}:::255.255.255.0::{interface}:off"]
        return [*words, "-kernel", str(image.kernel), "-initrd", str(image.initrd), "-append", " ".join(kernel)]

    def _credential(self) -> str:
        """What systemd-tmpfiles writes at each boot: who may enter, and the key that the guest is known by."""
        files = {
            "/root/.ssh/authorized_keys": self.folder / f"{KEY}.pub",
            "/etc/ssh/ssh_host_ed25519_key": self.folder / HOST_KEY,
        }
        lines = [f"f+~ {path} 0600 root root - {_base64(file.read_bytes())}\n" for path, file in files.items()]
        return _base64("".join(["d /root/.ssh 0700 root root -\n", *lines]).encode())


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


class Machines:
    """The guests of a run, from boot to end."""

    def __init__(self, guests: Sequence[Guest], image: Image, accelerator: str) -> None:
        self.guests, self.accelerator, self._image = guests, accelerator, image
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, guests: Iterable[Guest]) -> None:
        """Switch guests on, and wait until they can be used."""
        for guest in (chosen := list(guests)):
            if not guest.overlay.exists():
                words = ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", self._image.disk, guest.overlay]
                subprocess.run(words, check=True)
            command = guest.command(self._image, self.accelerator)
            with guest.console.with_suffix(".qemu").open("wb") as said:
                self.running[guest.name] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=said)
        for guest in chosen:
            self.wait_for(guest)

    def wait_for(self, guest: Guest) -> None:
        """Until systemd has started all that a boot starts. Raises RoundaboutError where it does not."""
        give_up = time.monotonic() + BOOT_S
        while time.monotonic() < give_up and self.running[guest.name].poll() is None:
            done = self.call(guest, "systemctl is-system-running --wait")
            if done.stdout.strip() == "running":
                return
            if done.stdout.strip() == "degraded":
                failed = self.call(guest, "systemctl list-units --failed --no-legend").stdout
                raise RoundaboutError(f"guest {guest.name}: these failed at boot: {failed.strip()}")
            time.sleep(1)
        ended = self.running[guest.name].poll() is not None
        what = "ended while it booted" if ended else f"did not boot within {BOOT_S} s"
        raise RoundaboutError(f"guest {guest.name} {what}", f"its console: {guest.console}")

    def call(self, guest: Guest, command: str, timeout_s: float = 600) -> "subprocess.CompletedProcess[str]":
        """Run a shell's command on a guest."""
        words = ["ssh", "-F", str(guest.folder / "ssh_config"), guest.name, command]
        return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout_s)

    def call_checked(self, guest: Guest, command: str) -> str:
        """Run a command that must not fail; what it says. Raises RoundaboutError."""
        done = self.call(guest, command)
        if done.returncode:
            raise RoundaboutError(f"guest {guest.name}: {command}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def answers(self, guest: Guest) -> bool:
        """Return True if the guest serves a new SSH connection in time. ssh itself waits longer in a key exchange."""
        try:
            return self.call(guest, "true", ANSWER_TIMEOUT_S).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def reboot(self, guest: Guest) -> None:
        """Have a guest boot again, and wait until it has."""
        before = self.call_checked(guest, "cat /proc/sys/kernel/random/boot_id")
        self.call(guest, "systemctl reboot")
        give_up = time.monotonic() + BOOT_S
        while self.call(guest, "cat /proc/sys/kernel/random/boot_id").stdout in ("", before):
            if time.monotonic() > give_up:
                raise RoundaboutError(f"guest {guest.name} did not boot again within {BOOT_S} s")
            time.sleep(1)
        self.wait_for(guest)

    def kill(self, guest: Guest) -> None:
        """Take a guest's power away."""
        process = self.running.pop(guest.name)
        process.kill()
        process.wait()

    def end(self) -> None:
        """Have all guests shut down, and take the power of those that do not."""
        for guest in self.guests:
            if guest.name in self.running:
                with suppress(subprocess.TimeoutExpired):
                    self.call(guest, "systemctl poweroff", timeout_s=30)
        give_up = time.monotonic() + END_S
        for guest in self.guests:
            if process := self.running.get(guest.name):
                with suppress(subprocess.TimeoutExpired):
                    process.wait(max(0, give_up - time.monotonic()))
                self.kill(guest)


def connect(guests: Sequence[Guest]) -> None:
    """Bridges with a port for each guest, in the network namespace that we are in, which they end with.

    Ports of the network under test send no faster than its links carry.
    """
    lines = ["link set lo up"]
    for bridge in (CONTROL, FABRIC):
        lines += [f"link add {bridge} type bridge", f"link set {bridge} up"]
        lines.append(f"address add {CONTROLLER[bridge]}/24 dev {bridge}")
        for tap in (guest.tap(bridge) for guest in guests):
            lines += [f"tuntap add dev {tap} mode tap", f"link set {tap} master {bridge} up"]
    subprocess.run(["ip", "-batch", "-"], input="\n".join(lines), text=True, check=True)
    for guest in guests:
        shape_port(guest)


def shape_port(guest: Guest, share: float = 1.0) -> None:
    """Let a guest's port of the network under test send at a share of its rate."""
    frame_bytes = frames.frame_bytes(MTU_BYTES)
    rate_bps = share * PAYLOAD_RATE_GBPS * 1e9 / SCALE * frame_bytes / frames.segment_bytes(MTU_BYTES)
    shaper = f"tbf rate {rate_bps:.0f}bit burst {2 * frame_bytes}b limit {DEEP_BYTES}b"  # it cuts what is larger
    words = ["tc", "qdisc", "replace", "dev", guest.tap(FABRIC), "root", *shaper.split()]
    subprocess.run(words, check=True)


def write_ssh(folder: Path, guests: Sequence[Guest], bridge: str = CONTROL) -> None:
    """Write the keys of this run, and the configuration by which ssh uses them over one of the bridges."""
    for name in (KEY, HOST_KEY):
        if not (folder / name).exists():
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", folder / name], check=True)
    kind, key, _ = (folder / f"{HOST_KEY}.pub").read_text().split()
    # By address: paramiko does not support HostKeyAlias.
    names = ",".join(address for guest in guests for address in guest.addresses.values())
    (folder / "known_hosts").write_text(f"{names} {kind} {key}\n")
    hosts = [f"Host {guest.name}\n  HostName {guest.addresses[bridge]}\n" for guest in guests]
    common = {
        "User": "root",
        "IdentityFile": folder / KEY,
        "IdentitiesOnly": "yes",
        "UserKnownHostsFile": folder / "known_hosts",
        "StrictHostKeyChecking": "yes",
        "BatchMode": "yes",
        "ConnectTimeout": "10",
        "ServerAliveInterval": "15",
        "ServerAliveCountMax": "8",  # who is silent for so long has no power
        "LogLevel": "ERROR",
    }
    hosts.append("Host *\n" + "".join(f"  {name} {value}\n" for name, value in common.items()))
    (folder / "ssh_config").write_text("".join(hosts))
