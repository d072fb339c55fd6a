# SPDX-License-Identifier: Apache-2.0
"""What the machines of a rack have and lack, asked without changing anything; nothing needs to be installed there."""

import shlex
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from roundabout.testbeds.rack.inventory import Inventory, Server

PATIENCE_S = 30
PROVISION = "make provision INVENTORY=..., which installs it"

# Only what every shell has built in: a machine with nothing must be able to answer. One line a finding, with tabs:
# name, whether it is good, what was found, how to get it. Its arguments are those of `arguments`, below.
SCRIPT = r"""
root=$1 nic=$2 driver=$3 gpu=$4 clock=$5 governor=$6
PATH=$PATH:$root/usr/local/sbin:$root/usr/sbin:$root/sbin
say() { printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4"; }
tool() { if command -v "$1" > /dev/null 2>&1; then say "$1" yes "found" ""; else say "$1" no "not found" "$2"; fi; }
file() { if [ -e "$root$2" ]; then say "$1" yes "$2" ""; else say "$1" no "no $2" "$3"; fi; }
ID= VERSION_ID=
[ ! -r "$root/etc/os-release" ] || . "$root/etc/os-release"
system="Ubuntu 20.04, 22.04 or 24.04, or Debian 11 or later"
case "$ID $VERSION_ID" in
  "ubuntu 2"[024].04 | "debian 1"[1-9]) say system yes "$ID $VERSION_ID" "" ;;
  *) say system no "${ID:-no /etc/os-release} $VERSION_ID" "$system" ;;
esac
if [ -r "$root/etc/shadow" ] || sudo -n true < /dev/null 2> /dev/null; then say root yes "may be root" ""
else say root no "neither root nor sudo without a password" "ansible_user: root, or NOPASSWD in sudoers"; fi
if python3 -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2> /dev/null; then say python3 yes "3.8 or later" ""
else say python3 no "no Python 3.8 or later" "apt-get install python3"; fi
tool apt-get "$system"
for each in ip ethtool tcpdump iperf3; do tool "$each" "PROVISION"; done
tool systemctl "a system with systemd: it applies the settings after a reboot"
[ "$clock" != chrony ] || tool chronyc "PROVISION"
[ "$clock" != ptp ] || tool ptp4l "PROVISION"
[ "$governor" = leave ] || file "CPU governor" /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor \
  "a BIOS that leaves power to the system, or governor: leave in the inventory"
file BTF /sys/kernel/btf/vmlinux "a kernel with CONFIG_DEBUG_INFO_BTF=y; without it no transports in eBPF"
file "NIC $nic" "/sys/class/net/$nic" "nic in the inventory as \`ip link\` calls it, or the NIC's driver"
rdma=
for each in "$root/sys/class/net/$nic/device/infiniband/"*; do [ ! -e "$each" ] || rdma=${each##*/}; done
[ "$rdma" ] && say "RDMA device" yes "$rdma" "" ||
  say "RDMA device" no "none of $nic" "a ConnectX NIC with mlx5_ib loaded (rdma-core, or DOCA-OFED)"
file "RoCE mode" /sys/kernel/config/rdma_cm "modprobe rdma_cm, with configfs mounted; provision does it"
if [ "$driver" = ofed ]; then
  tool ofed_info "DOCA-OFED from NVIDIA (the site's to install), or driver: inbox in the inventory"
  tool mlnx_qos "DOCA-OFED, or mlnx-tools"
  file "DCQCN" "/sys/class/net/$nic/ecn" "DOCA-OFED, and a physical function"
else
  if dcb app help > /dev/null 2>&1; then say dcb yes "found" ""
  else say dcb no "no \`dcb app\`" "iproute2 5.12 or later (Debian 12, Ubuntu 22.04), or driver: ofed"; fi
  bdf=$(cd -P "$root/sys/class/net/$nic/device" 2> /dev/null && pwd -P) || bdf=$nic
  file DCQCN "/sys/kernel/debug/mlx5/${bdf##*/}/cc_params" "root, debugfs mounted, no kernel lockdown (unverified)"
fi
[ "$gpu" = none ] || tool nvidia-smi "NVIDIA's driver; gpu: install in the inventory lets provision do it"
""".replace("PROVISION", PROVISION)

# What runs SCRIPT: root's shell, since debugfs is root's alone; or else the user's, which tells that it is not root's.
SHELL = 'sudo -n true < /dev/null 2> /dev/null && exec sudo -n sh -s -- "$@"; exec sh -s -- "$@"'


class Finding(NamedTuple):
    """One thing that was looked at on a host."""

    name: str
    good: bool
    found: str
    mend: str


def examine(inventory: Inventory) -> Mapping[str, list[Finding]]:
    """What each host has and lacks, in the inventory's order. A host that does not answer is a finding, too."""
    with ThreadPoolExecutor(min(32, len(inventory.servers))) as pool:
        answers = pool.map(lambda server: _ask(inventory, server), inventory.servers.values())
        return dict(zip(inventory.servers, answers, strict=True))


def arguments(inventory: Inventory, server: Server, root: str = "") -> list[str]:
    """What SCRIPT is told."""
    common = inventory.common
    return [root, server.nic, common.driver, common.gpu, common.clock, common.governor]


def parse(text: str) -> Iterator[Finding]:
    """What SCRIPT printed; a login's banner is none of it."""
    for line in text.splitlines():
        if line.count("\t") == 3:
            name, good, found, mend = line.split("\t")
            yield Finding(name, good == "yes", found, mend)


def _ask(inventory: Inventory, server: Server) -> list[Finding]:
    config = str(Path(inventory.all.vars.ssh_config).expanduser())
    ssh = ["ssh", "-F", config, "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-l", inventory.common.ansible_user]
    shell = shlex.join(["sh", "-c", SHELL, "sh", *arguments(inventory, server)])
    mend = f"`ssh -F {config} -l {inventory.common.ansible_user} {server.ansible_host}` must work without a question"
    try:
        command = [*ssh, server.ansible_host, shell]
        done = subprocess.run(command, input=SCRIPT, capture_output=True, text=True, timeout=PATIENCE_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return [Finding("ssh", False, str(error), mend)]
    if done.returncode != 0 or not done.stdout:
        said = (done.stderr.strip().splitlines() or ["no answer"])[-1]
        return [Finding("ssh", False, said, mend)]
    return [Finding("ssh", True, "answers", ""), *parse(done.stdout)]
