# SPDX-License-Identifier: Apache-2.0
"""Checks of GPUDirect RDMA between a server's GPUs and its NIC: accessible memory, and a short PCIe path.

Sources: NVIDIA, "GPUDirect RDMA and GPUDirect Storage" (nvidia-peermem, or DMA-BUF with open kernel modules and Linux
5.12); NVIDIA, NCCL's troubleshooting (ACS and an IOMMU redirect peer-to-peer traffic through the CPU's root complex);
the kernel's pci_regs.h (PCI_ACS_CTRL and its bits) and Documentation/ABI/testing/sysfs-kernel-iommu_groups.
"""

PREFIX = "GPUDirect"  # prefix of the names of findings

# Second part of the SCRIPT of examination.py. It uses that script's variables and `say`, shell built-ins and setpci.
SCRIPT = r"""
there() { (cd -P "$1" 2> /dev/null && pwd -P); }
bridges() { # those above a device, given its path
  path=${1%/*}
  while :; do
    case ${path##*/} in *:??:??.?) printf '%s ' "${path##*/}" ;; *) return ;; esac
    path=${path%/*}
  done
}
way() { # from the NIC's path to a GPU's: how far, the less the nearer, and in words
  nic_rest=${1#*/devices/} gpu_rest=${2#*/devices/} nic_node= gpu_node=
  [ ! -r "$1/numa_node" ] || read -r nic_node < "$1/numa_node"
  [ ! -r "$2/numa_node" ] || read -r gpu_node < "$2/numa_node"
  nic_port=${nic_rest#*/} gpu_port=${gpu_rest#*/}
  if [ "${nic_rest%%/*}" != "${gpu_rest%%/*}" ]; then
    if [ "$nic_node" = "$gpu_node" ]; then echo "3 by several host bridges of a CPU"
    else echo "4 by way of another CPU"; fi
  elif [ "${nic_port%%/*}" = "${gpu_port%%/*}" ]; then echo "1 below the same switch"
  else echo "2 by the same host bridge"; fi
}
gpudirect() {
  version= kernel=0.0
  [ ! -r "$root/proc/driver/nvidia/version" ] || read -r version < "$root/proc/driver/nvidia/version"
  [ ! -r "$root/proc/sys/kernel/osrelease" ] || read -r kernel < "$root/proc/sys/kernel/osrelease"
  minor=${kernel#*.} minor=${minor%%[!0-9]*}
  memory=
  case "$version" in *"Open Kernel Module"*) [ $((${kernel%%.*} * 1000 + minor)) -lt 5012 ] || memory="DMA-BUF" ;; esac
  [ ! -d "$root/sys/module/nvidia_peermem" ] || memory="nvidia-peermem"
  if [ "$memory" ]; then say "GPUDirect memory" yes "by $memory" ""
  else say "GPUDirect memory" no "neither nvidia-peermem nor DMA-BUF" \
    "modprobe nvidia-peermem, or NVIDIA's open kernel modules on Linux 5.12 or later"; fi
  at=$(there "$root/sys/class/net/$nic/device") nearest="9 none" gpu_at=
  for each in "$root/sys/bus/pci/devices/"*; do
    [ -r "$each/vendor" ] && read -r vendor < "$each/vendor" && [ "$vendor" = 0x10de ] &&
      read -r class < "$each/class" || continue
    case $class in 0x0300* | 0x0302*) ;; *) continue ;; esac
    found=$(way "$at" "$(there "$each")")
    [ "${found%% *}" -ge "${nearest%% *}" ] || nearest=$found gpu_at=$(there "$each")
  done
  if [ -z "$gpu_at" ]; then
    say "GPUDirect way" no "no GPU of NVIDIA's on PCI" "gpu: none in the inventory, where there is none"
    return
  elif [ "${nearest%% *}" -le 2 ]; then say "GPUDirect way" yes "${gpu_at##*/} ${nearest#* }" ""
  else say "GPUDirect way" no "${gpu_at##*/} ${nearest#* }, and none is nearer" \
    "a NIC, or nic in the inventory, below a switch or host bridge of the GPUs"; fi
  redirecting= setpci=$(command -v setpci)
  for each in $(bridges "$at") $(bridges "$gpu_at"); do # request and completion redirect, upstream forwarding
    control=$("${setpci:-:}" -s "$each" ECAP_ACS+6.w 2> /dev/null < /dev/null)
    [ $((0x0${control} & 0x1c)) = 0 ] || redirecting="$redirecting $each"
  done
  if [ -z "$setpci" ]; then say "GPUDirect ACS" no "no setpci to ask it" "apt-get install pciutils"
  elif [ "$redirecting" ]; then say "GPUDirect ACS" no "redirects at$redirecting" \
    "off in the BIOS, or \`setpci -s BRIDGE ECAP_ACS+6.w=0\` after each boot"
  else say "GPUDirect ACS" yes "no bridge between redirects" ""; fi
  translated=
  for each in "$at" "$gpu_at"; do
    [ -r "$each/iommu_group/type" ] && read -r type < "$each/iommu_group/type" && [ "$type" != identity ] &&
      translated="$translated ${each##*/} ($type)"
  done
  if [ "$translated" ]; then say "GPUDirect IOMMU" no "translates$translated" \
    "iommu=pt on the kernel's command line, or off in the BIOS"
  else say "GPUDirect IOMMU" yes "off, or passes through" ""; fi
}
[ "$gpu" = none ] || gpudirect
"""
