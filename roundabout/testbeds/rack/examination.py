# SPDX-License-Identifier: Apache-2.0
"""Checks of a rack's machines. They change nothing on a machine and need no installed program of this project."""

import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from roundabout.core.errors import RoundaboutError
from roundabout.core.paths import ROOT
from roundabout.spec.trainers import replay
from roundabout.testbeds.rack import gpudirect
from roundabout.testbeds.rack.inventory import Inventory, Server

PATIENCE_S = 30
PROVISION = "sudo roundabout provision INVENTORY, which installs it"
# Names of findings that other modules use.
SSH, DEVICE, GID, WRITE, GLIBC = "ssh", "RDMA device", "GID", "ib_write_bw", "RDMA glibc"

PYTHON_38 = "import sys; sys.exit(sys.version_info < (3, 8))"
# Shell script with only built-in commands, so that it runs on any machine. It prints one line for each finding, with
# fields between tabs: name, yes or no, found value, remedy. `script_arguments` returns its arguments.
SCRIPT = r"""
root=$1 nic=$2 driver=$3 gpu=$4 clock=$5 governor=$6 irqs=$7 mtu=$8 address=$9
shift 9
glibc=$1
shift # what is left are the others' addresses
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
if python3 -c 'PYTHON_38' 2> /dev/null; then say python3 yes "3.8 or later" ""
else say python3 no "no Python 3.8 or later" "apt-get install python3"; fi
tool apt-get "$system"
for each in ip ethtool tcpdump iperf3; do tool "$each" "PROVISION"; done
tool systemctl "a system with systemd: it applies the settings after a reboot"
[ "$clock" != chrony ] || tool chronyc "PROVISION"
[ "$clock" != ptp ] || tool ptp4l "PROVISION"
[ "$governor" = leave ] || file "CPU governor" /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor \
  "a BIOS that leaves power to the system, or governor: leave in the inventory"
file BTF /sys/kernel/btf/vmlinux "a kernel with CONFIG_DEBUG_INFO_BTF=y; without it no transports in eBPF"
is=
[ ! -e "$root/sys/class/net/$nic/bonding" ] || is="a bond"
[ ! -e "$root/sys/class/net/$nic/master" ] || is="a port of a bond or bridge"
[ ! -e "$root/sys/class/net/$nic/device/physfn" ] || is="a virtual function"
[ ! -r "$root/sys/class/net/$nic/uevent" ] ||
  while read -r line; do [ "$line" != DEVTYPE=vlan ] || is="a VLAN"; done < "$root/sys/class/net/$nic/uevent"
if [ "$is" ]; then say "NIC $nic" no "$is" "nic in the inventory: a physical function's own interface, in no bond"
else file "NIC $nic" "/sys/class/net/$nic" "nic in the inventory as \`ip link\` calls it, or the NIC's driver"; fi
case " $(ip -4 -o addr show dev "$nic" 2> /dev/null) " in
  *" $address/"*) say address yes "$address" "" ;;
  *) say address no "not $address" "address in the inventory, or \`ip addr add\` by the site's own means" ;;
esac
ping=$(command -v ping) lost=
for each do
  [ -z "$ping" ] || "$ping" -q -n -c 1 -W 1 -M do -s $((mtu - 28)) -I "$address" "$each" < /dev/null > /dev/null 2>&1 ||
    lost="$lost $each"
done
if [ -z "$ping" ]; then say "path MTU" no "no ping" "PROVISION"
elif [ "$lost" ]; then say "path MTU" no "no answer to $mtu bytes from$lost" \
  "what \`provision\` sets (mtu_bytes) on all servers, and switches' ports that carry as much"
else say "path MTU" yes "$mtu bytes to all others, unfragmented" ""; fi
rdma=
for each in "$root/sys/class/net/$nic/device/infiniband/"*; do [ ! -e "$each" ] || rdma=${each##*/}; done
for each in "$root/sys/class/infiniband/"*/parent; do # soft-RoCE is below no NIC, but names it
  [ -r "$each" ] && read -r of < "$each" && [ "$of" = "$nic" ] && each=${each%/parent} && rdma=${each##*/}
done
[ "$rdma" ] && say "RDMA device" yes "$rdma" "" ||
  say "RDMA device" no "none of $nic" "a ConnectX NIC with mlx5_ib loaded (rdma-core, or DOCA-OFED)"
if [ "$rdma" ]; then
  ipv4=$(IFS=.; set -- $address; printf '0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x' "$@") gid=
  for each in "$root/sys/class/infiniband/$rdma/ports/1/gid_attrs/types/"*; do
    [ -r "$each" ] && read -r type < "$each" && [ "$type" = "RoCE v2" ] &&
      read -r found < "${each%/*/*/*}/gids/${each##*/}" && [ "$found" = "$ipv4" ] && gid=${each##*/}
  done
  if [ "$gid" ]; then say GID yes "$gid is $address by RoCE v2" ""
  else say GID no "none is $address by RoCE v2" "the address on $nic itself, and RoCE on in its firmware"; fi
  has=$(getconf GNU_LIBC_VERSION 2> /dev/null < /dev/null) has=${has#glibc }
  minor=${has#*.} minor=${minor%%.*}
  if [ "${has%%.*}" = "${glibc%.*}" ] && [ "$minor" -ge "${glibc#*.}" ]; then say "RDMA glibc" yes "$has" ""
  else say "RDMA glibc" no "${has:-none}" "$glibc or later, for jobs by RDMA as built here; they ride over TCP"; fi
fi
file "RoCE mode" /sys/kernel/config/rdma_cm "modprobe rdma_cm, with configfs mounted; provision does it"
bdf=$(cd -P "$root/sys/class/net/$nic/device" 2> /dev/null && pwd -P) || bdf=$nic
if [ "$driver" = ofed ]; then
  tool ofed_info "DOCA-OFED from NVIDIA (the site's to install), or driver: inbox in the inventory"
  tool mlnx_qos "DOCA-OFED, or mlnx-tools"
  tool ib_write_bw "DOCA-OFED's perftest; for \`verify --traffic\` alone"
  file "DCQCN" "/sys/class/net/$nic/ecn" "DOCA-OFED, and a physical function"
else
  tool ib_write_bw "PROVISION; for \`verify --traffic\` alone"
  if dcb app help > /dev/null 2>&1; then say dcb yes "found" ""
  else say dcb no "no \`dcb app\`" "iproute2 5.12 or later (Debian 12, Ubuntu 22.04), or driver: ofed"; fi
  file DCQCN "/sys/kernel/debug/mlx5/${bdf##*/}/cc_params" "root, debugfs mounted, no kernel lockdown (unverified)"
fi
for each in mlxconfig mstconfig; do
  dcbx= willing=
  if [ "$rdma" ] && command -v "$each" > /dev/null 2>&1; then
    while read -r name value rest; do case "$name $value" in
      LLDP_NB_DCBX_P*True*) dcbx=on ;;
      DCBX_WILLING_P*True*) willing=on ;;
    esac; done <<- SAID
	$("$each" -d "${bdf##*/}" q LLDP_NB_DCBX_P1 DCBX_WILLING_P1 2> /dev/null < /dev/null)
	SAID
    if [ "$dcbx" ] && [ "$willing" ]; then say "firmware's DCBX" no "on and willing: switches may change PFC" \
      "$each -d ${bdf##*/} set LLDP_NB_DCBX_P1=0, and a reset of firmware"
    else say "firmware's DCBX" yes "off, or not willing" ""; fi
    break
  fi
done
running=
[ -z "$irqs" ] || for each in "$root"/proc/[0-9]*/comm; do
  [ -r "$each" ] && read -r name 2> /dev/null < "$each" && [ "$name" = irqbalance ] && running=yes
done
[ -z "$running" ] || say irqbalance no "runs, and moves interrupts" \
  "systemctl disable --now irqbalance, or no irq_cpus in the inventory"
[ "$gpu" = none ] || tool nvidia-smi "NVIDIA's driver; gpu: install in the inventory lets provision do it"
""".replace("PROVISION", PROVISION).replace("PYTHON_38", PYTHON_38)
SCRIPT += gpudirect.SCRIPT

# Command that runs SCRIPT in root's shell, because only root reads debugfs; without sudo, in the user's shell.
SHELL = 'sudo -n true < /dev/null 2> /dev/null && exec sudo -n sh -s -- "$@"; exec sh -s -- "$@"'


class Finding(NamedTuple):
    """The result of one check on a host. `mend` is the remedy."""

    name: str
    good: bool
    found: str
    mend: str


def examine_hosts(inventory: Inventory) -> Mapping[str, list[Finding]]:
    """Return the findings on each host, in the inventory's order. An unreachable host has a finding that says so."""
    with ThreadPoolExecutor(min(32, len(inventory.servers))) as pool:
        answers = pool.map(lambda server: _examine_host(inventory, server), inventory.servers.values())
        return dict(zip(inventory.servers, answers, strict=True))


def script_arguments(inventory: Inventory, server: Server, root: str = "") -> list[str]:
    """Return the arguments of SCRIPT for a server. `root` replaces / in tests."""
    common = inventory.common
    irqs = common.irq_cpus or ""
    own = address_of(server)
    others = [address_of(each) for each in inventory.servers.values() if each is not server]
    asked = [common.driver, common.gpu, common.clock, common.governor, irqs, str(common.mtu_bytes)]
    return [root, server.nic, *asked, own, glibc_needed(ROOT / str(replay.Trainer.rdma_program)), *others]


def glibc_needed(program: Path) -> str:
    """Return the newest glibc version that a program's symbols require, such as "2.34", or "2.0" without any."""
    names = re.findall(rb"\0GLIBC_2\.(\d+)(?=[.\0])", program.read_bytes()) if program.exists() else []
    return f"2.{max(map(int, names), default=0)}"


def address_of(server: Server) -> str:
    """Return the server's IPv4 address on the network under test, without the prefix length."""
    return server.address.partition("/")[0]


def parse(text: str) -> Iterator[Finding]:
    """Yield the findings in SCRIPT's output. Other lines, such as a login banner, are ignored."""
    for line in text.splitlines():
        if line.count("\t") == 3:
            name, good, found, mend = line.split("\t")
            yield Finding(name, good == "yes", found, mend)


def _examine_host(inventory: Inventory, server: Server) -> list[Finding]:
    try:
        said = run_over_ssh(
            inventory, server, ["sh", "-c", SHELL, "sh", *script_arguments(inventory, server)], SCRIPT, PATIENCE_S
        )
    except RoundaboutError as error:
        return [Finding(SSH, False, error.message, error.hint or "")]
    return [Finding(SSH, True, "answers", ""), *parse(said)]


def run_over_ssh(inventory: Inventory, server: Server, words: list[str], stdin: str, patience_s: float) -> str:
    """Run the command `words` on a server by ssh and return its stdout.

    Raises RoundaboutError if the command fails or takes longer than `patience_s`.
    """
    config = str(inventory.ssh_config)
    ssh = ["ssh", "-F", config, "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-l", inventory.common.ansible_user]
    mend = f"`ssh -F {config} -l {inventory.common.ansible_user} {server.ansible_host}` must work without a question"
    try:
        command = [*ssh, server.ansible_host, shlex.join(words)]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=patience_s)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RoundaboutError(str(error), mend) from error
    if done.returncode != 0 or not done.stdout:
        raise RoundaboutError((done.stderr.strip().splitlines() or ["no answer"])[-1], mend)
    return done.stdout
