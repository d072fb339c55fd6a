#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks of one machine of a rack, which change nothing. It has only built-in commands, so that it runs on any machine.
# It prints one line for each finding, with fields between tabs: name, yes or no, found value, remedy.
# roundabout/testbeds/rack/examination.py gives it its arguments, and reads its lines.
root=$1 nic=$2 driver=$3 gpu=$4 clock=$5 governor=$6 irqs=$7 mtu=$8 address=$9
shift 9
glibc=$1 gpu_driver=$2 shared_nic=$3 become=$4 scope=$5
shift 5 # what is left are the others' addresses
provision="sudo roundabout provision INVENTORY, which installs it"
PATH=$PATH:$root/usr/sbin:$root/sbin
say() { printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4"; }
tool() {
  if command -v "$1" > /dev/null 2>&1; then say "$1" yes "found" "" && return; fi
  for place in /usr/local/sbin /usr/local/bin; do # which RHEL's sudo leaves out
    if [ -x "$root$place/$1" ]; then
      say "$1" no "in $place, which is not in PATH" "$place in secure_path of sudoers, or a link to it in /usr/bin"
      return
    fi
  done
  say "$1" no "not found" "$2"
}
first_line() { first=; [ ! -r "$1" ] || read -r first 2> /dev/null < "$1" || :; } # into $first, or an empty text
at_least() { # whether version $1 is version $2 or later, by the first two numbers
  minor=${1#*.} least=${2#*.}
  [ "${1%%.*}" -gt "${2%%.*}" ] || { [ "${1%%.*}" -eq "${2%%.*}" ] && [ "${minor%%.*}" -ge "${least%%.*}" ]; }
}
file() { if [ -e "$root$2" ]; then say "$1" yes "$2" ""; else say "$1" no "no $2" "$3"; fi; }
ID="" VERSION_ID=""
# shellcheck disable=SC1091 # each machine has its own
[ ! -r "$root/etc/os-release" ] || . "$root/etc/os-release"
system="Ubuntu 20.04, 22.04 or 24.04, Debian 11 or later, RHEL, Rocky or AlmaLinux 9, or SLES 16"
case $ID in rhel | rocky | almalinux) manager=dnf ;; sles) manager=zypper ;; *) manager=apt-get ;; esac
case "$ID $VERSION_ID" in
  "ubuntu 2"[024].04 | "debian 1"[1-9] | "rhel 9"* | "rocky 9"* | "almalinux 9"* | "sles 16"*)
    say system yes "$ID $VERSION_ID" "" ;;
  *) say system no "${ID:-no /etc/os-release} $VERSION_ID" "$system" ;;
esac
if [ "$become" = no ]; then say "ordinary user" no "$(id -un), by ansible_become: false: runs compare settings, and \
have no captures, no transports in eBPF and no probes of routes" "a user with sudo, and ansible_become: true; for \
settings once, by \`provision\`"
elif [ -r "$root/etc/shadow" ] || sudo -n true < /dev/null 2> /dev/null; then say root yes "may be root" ""
else say root no "neither root nor sudo without a password" "ansible_user: root, or NOPASSWD in sudoers"; fi
if python3 -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2> /dev/null; then say python3 yes "3.8 or later" ""
else say python3 no "no Python 3.8 or later" "$manager install python3"; fi
tool $manager "$system, or provision --no-packages"
for each in ip ethtool tcpdump iperf3; do tool "$each" "$provision"; done
tool systemctl "a system with systemd: it applies the settings after a reboot"
[ "$clock" != chrony ] || tool chronyc "$provision"
[ "$clock" != ptp ] || tool ptp4l "$provision"
[ "$governor" = leave ] || file "CPU governor" /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor \
  "a BIOS that leaves power to the system, or governor: leave in the inventory"
file BTF /sys/kernel/btf/vmlinux "a kernel with CONFIG_DEBUG_INFO_BTF=y; without it no transports in eBPF"
first_line "$root/sys/class/net/$nic/device/device"; device_id=${first:-0}
is="" instead=
case $device_id in # as mlx5_core_pci_table has them; a guest lacks physfn
  0x1012 | 0x1014 | 0x1016 | 0x1018 | 0x101a | 0x101c | 0x101e | 0xa2d3)
    is="a virtual function" instead="a NIC that the guest has as a whole" ;;
esac
[ ! -e "$root/sys/class/net/$nic/bonding" ] ||
  { is="a bond" instead="one of its ports, taken out of it (ip link set PORT nomaster)"; }
[ ! -e "$root/sys/class/net/$nic/master" ] ||
  { is="a port of a bond or bridge" instead="this one, taken out of it (ip link set $nic nomaster)"; }
[ ! -e "$root/sys/class/net/$nic/device/physfn" ] ||
  { is="a virtual function" instead="its physical function (ls /sys/class/net/$nic/device/physfn/net)"; }
[ ! -r "$root/sys/class/net/$nic/uevent" ] ||
  while read -r line; do
    [ "$line" != DEVTYPE=vlan ] || { is="a VLAN" instead="the NIC below it, with an address of its own"; }
  done < "$root/sys/class/net/$nic/uevent"
if [ "$is" ]; then say "NIC $nic" no "$is" "nic in the inventory: $instead; docs/how-to/rack.md has the recipe"
else file "NIC $nic" "/sys/class/net/$nic" "nic in the inventory as \`ip link\` calls it, or the NIC's driver"; fi
# Other uses of the NIC, which a change of its link would interrupt. settings_guard.py refuses such changes.
lower() { # an interface, and those below it: ports of a bond or bridge, the NIC of a VLAN
  printf ' %s ' "$1"
  for each in "$root/sys/class/net/$1/lower_"*; do [ ! -e "$each" ] || (lower "${each##*/lower_}"); done
}
is_to() { # the NIC, or an interface above it, is the way to an address
  # shellcheck disable=SC2046 # the words of a route
  set -- $(ip -o route get "$1" 2> /dev/null)
  while [ $# -gt 1 ] && [ "$1" != dev ]; do shift; done
  case "$(lower "${2:-none}")" in *" $nic "*) ;; *) return 1 ;; esac
}
carries=
! is_to "${SSH_CONNECTION%% *}" || carries="SSH"
! is_to 0.0.0.1 || carries="$carries${carries:+, }the default route" # an address to which no other route leads
[ ! -r "$root/proc/mounts" ] || while read -r _ folder kind options _; do
  case "$kind" in nfs | nfs4 | cifs | smb3)
    server=${options##*,addr=}
    ! is_to "${server%%,*}" || carries="$carries${carries:+, }the file system $folder"
    ;;
  esac
done < "$root/proc/mounts"
[ -z "$carries" ] || [ "$shared_nic" = yes ] || say "NIC for data" no "$nic carries $carries" \
  "nic in the inventory: a NIC of its own for data; for guests and labs with one NIC, shared_nic: true"
case " $(ip -4 -o addr show dev "$nic" 2> /dev/null) " in
  *" $address/"*) say address yes "$address" "" ;;
  *) say address no "not $address" "address in the inventory, or \`ip addr add\` by the site's own means" ;;
esac
# The first device by name below the NIC, as in settings_nic.py and capture.py.
rdma=
for each in "$root/sys/class/net/$nic/device/infiniband/"*; do [ "$rdma" ] || [ ! -e "$each" ] || rdma=${each##*/}; done
for each in "$root/sys/class/infiniband/"*/parent; do # soft-RoCE is below no NIC, but names it
  first_line "$each"
  [ "$rdma" ] || [ "$first" != "$nic" ] || { each=${each%/parent} && rdma=${each##*/}; }
done
if [ "$rdma" ]; then say "RDMA device" yes "$rdma" ""
else say "RDMA device" no "none of $nic" "a ConnectX NIC with mlx5_ib loaded (rdma-core, or DOCA-OFED)"; fi
if [ "$rdma" ]; then
  # shellcheck disable=SC2086 # the address is split at its dots
  ipv4=$(IFS=.; set -- $address; printf '0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x' "$@") gid=
  for each in "$root/sys/class/infiniband/$rdma/ports/1/gid_attrs/types/"*; do
    [ -r "$each" ] && read -r type < "$each" && [ "$type" = "RoCE v2" ] &&
      read -r found < "${each%/*/*/*}/gids/${each##*/}" && [ "$found" = "$ipv4" ] && gid=${each##*/}
  done
  if [ "$gid" ]; then say GID yes "$gid is $address by RoCE v2" ""
  else say GID no "none is $address by RoCE v2" "the address on $nic itself, and RoCE on in its firmware; if both are \
so, the address came before the RDMA driver: take it from $nic and add it again"; fi
  has=$(getconf GNU_LIBC_VERSION 2> /dev/null) has=${has#glibc }
  if at_least "${has:-0.0}" "$glibc"; then say "RDMA glibc" yes "$has" ""
  else say "RDMA glibc" no "${has:-none}" "$glibc or later, for jobs by RDMA as built here; they ride over TCP"; fi
  if [ "$become" = no ]; then
    # shellcheck disable=SC3045 # dash and bash have it
    limit=$(ulimit -l 2> /dev/null)
    if [ "$limit" = unlimited ]; then say "RDMA memlock" yes "unlimited" ""
    else say "RDMA memlock" no "${limit:-unknown} KiB" "memlock unlimited in /etc/security/limits.d, and in Slurm \
PropagateResourceLimitsExcept=MEMLOCK: RDMA pins memory"; fi
  fi
fi
file "RoCE mode" /sys/kernel/config/rdma_cm "modprobe rdma_cm, with configfs mounted; provision does it"
bdf=$(cd -P "$root/sys/class/net/$nic/device" 2> /dev/null && pwd -P) || bdf=$nic
opened() { # the first of these files that can be opened; kernel lockdown leaves those of debugfs visible, and closed
  for each; do
    if (: < "$root$each") 2> /dev/null; then echo "$each" && return; fi
  done
}
if [ "$driver" = ofed ]; then
  tool ofed_info "DOCA-OFED from NVIDIA (the site's to install), or driver: inbox in the inventory"
  tool mlnx_qos "DOCA-OFED, or mlnx-tools"
  tool ib_write_bw "DOCA-OFED's perftest; for \`verify --traffic\` alone"
  ecn=/sys/class/net/$nic/ecn
  if [ "$(opened "$ecn/roce_rp/params/rpg_time_reset" "$ecn/roce_rp/rpg_time_reset")" ]; then say DCQCN yes "$ecn" ""
  else say DCQCN no "no $ecn with DCQCN's parameters" "root, DOCA-OFED, and a physical function"; fi
else
  tool ib_write_bw "$provision; for \`verify --traffic\` alone"
  if dcb app help > /dev/null 2>&1; then say dcb yes "found" ""
  else say dcb no "no \`dcb app\`" "iproute2 5.12 or later (Debian 12, Ubuntu 22.04), or driver: ofed"; fi
  cc_params=/sys/kernel/debug/mlx5/${bdf##*/}/cc_params
  if [ "$(opened "$cc_params/rp_time_reset")" ]; then say DCQCN yes "$cc_params" ""
  elif [ -e "$root$cc_params" ]; then say DCQCN no "$cc_params is closed or empty" \
    "root; under kernel lockdown (Secure Boot) DOCA-OFED with driver: ofed, or lockdown off"
  else say DCQCN no "no $cc_params" "root, and debugfs mounted"; fi
fi
[ "$scope" = all ] || exit 0 # what follows is of no use to a run, and can take long

ping=$(command -v ping) lost=
for each; do
  [ -z "$ping" ] || "$ping" -q -n -c 1 -W 1 -M "do" -s $((mtu - 28)) -I "$address" "$each" \
    < /dev/null > /dev/null 2>&1 ||
    lost="$lost $each"
done
if [ -z "$ping" ]; then say "path MTU" no "no ping" "$provision"
elif [ "$lost" ]; then say "path MTU" no "no answer to $mtu bytes from$lost" \
  "what \`provision\` sets (mtu_bytes) on all servers, and switches' ports that carry as much"
else say "path MTU" yes "$mtu bytes to all others, unfragmented" ""; fi
# With several NICs, packets from the address of one may leave by another.
route_to() { # sets $way and $table to the interface and routing table of packets from the NIC's address to $1
  # shellcheck disable=SC2046 # the words of a route
  set -- $(ip -N -4 -o route get "$1" from "$address" 2> /dev/null)
  way="" table=main
  while [ $# -gt 1 ]; do
    case $1 in dev) way=$2 ;; table) table=$2 ;; esac
    shift
  done
}
route_to "${1:-$address}"
if [ "$way" = "$nic" ]; then say route yes "by $nic, table $table" ""
elif [ "$way" ] && [ $# -gt 0 ]; then say route no "packets from $address to $1 leave by $way" \
  "a routing table N for this address: \`ip rule add from $address table N\`, and table: N in the inventory"
fi
# Soft-RoCE needs no RDMA capture: its packets are at the interface.
if [ -e "$root/sys/class/net/$nic/device/infiniband/${rdma:-none}" ] && command -v tcpdump > /dev/null 2>&1; then
  case "$(tcpdump -D 2> /dev/null)" in
    *".$rdma "*) say "RDMA capture" yes "tcpdump lists $rdma" "" ;;
    *) say "RDMA capture" no "tcpdump does not list $rdma: captures are without RDMA" \
      "libpcap built with --enable-rdma, and tcpdump with it; for the capture of RDMA packets alone" ;;
  esac
fi
# A switch's DCBX, or a script, may have put several priorities into one traffic class.
class="" classes="" shared="" apart="sudo roundabout provision INVENTORY"
if [ "$driver" = ofed ]; then
  apart="$apart; by hand: mlnx_qos -i $nic -d os -p 1,0,2,3,4,5,6,7"
  while read -r word number _; do
    case $word in tc:) class=$number ;; priority:) classes="$classes $class" ;; esac
  done <<- SAID
	$(mlnx_qos -i "$nic" -a 2> /dev/null < /dev/null)
	SAID
else
  for each in $(dcb ets show dev "$nic" prio-tc 2> /dev/null < /dev/null); do
    case $each in *:*) classes="$classes ${each#*:}" ;; esac
  done
fi
used=" "
for each in $classes; do case $used in *" $each "*) shared=yes ;; *) used="$used$each " ;; esac; done
[ -z "$shared" ] || say "traffic classes" no "priorities share classes:${used% }" "$apart"
case $bdf in *.1) port=2 ;; *) port=1 ;; esac
for each in mlxconfig mstconfig; do
  dcbx="" willing=
  if [ "$rdma" ] && command -v "$each" > /dev/null 2>&1; then
    while read -r name value rest; do case "$name $value" in
      LLDP_NB_DCBX_P"$port"*True*) dcbx=on ;;
      DCBX_WILLING_P"$port"*True*) willing=on ;;
    esac; done <<- SAID
	$("$each" -d "${bdf##*/}" q "LLDP_NB_DCBX_P$port" "DCBX_WILLING_P$port" 2> /dev/null < /dev/null)
	SAID
    if [ "$dcbx" ] && [ "$willing" ]; then say "firmware's DCBX" no "on and willing: switches may change PFC" \
      "$each -d ${bdf##*/} set LLDP_NB_DCBX_P$port=0, and a reset of firmware"
    else say "firmware's DCBX" yes "off, or not willing" ""; fi
    break
  fi
done

# Firmware from ConnectX-6 Dx (PCI device 0x101d) on may ignore DCQCN's parameters, as settings_nic.py has it.
nv() { # a setting in force and at the next boot; nothing if the device has none; else ? and what the tool said
  set -f
  name=$1 last="no answer"
  said=$("$nv_tool" -d "${bdf##*/}" -e q "$name" 2>&1 < /dev/null)
  case $said in *"The Device doesn't support $name parameter"*) return ;; esac
  while read -r line; do
    # shellcheck disable=SC2086 # split into its columns
    set -- ${line#\*}
    if [ "$1" = "$name" ] && [ $# = 4 ]; then echo "$3 $4" && return; fi
    [ -z "$line" ] || last=$line
  done <<- SAID
	$said
	SAID
  echo "? $last"
}
# The register PPCC (mstflint's register_access_table.adb): command 0x10 lists the algorithms, 0x3 reports if one is enabled.
# By NVIDIA's blog on ZTR-RTTCC, it is forced on all flows by disabling the algorithm in slot 15.
slot="local_port=1,pnat=0,lp_msb=0,algo_slot=15"
for reg_tool in mlxreg mstreg none; do ! command -v "$reg_tool" > /dev/null 2>&1 || break; done
rttcc_forced() {
  present=$(ppcc 0x10 "text[15]") enabled=$(ppcc 0x3 value)
  [ $((${present:-0})) != 0 ] && [ $((${enabled:-1})) = 0 ]
}
ppcc() { # the field $2 in the answer to command $1 for slot 15; nothing if the device or the tool has no such register
  "$reg_tool" -d "${bdf##*/}" --reg_name PPCC --get --op "cmd_type=$1" --indexes "$slot" 2> /dev/null < /dev/null |
    while read -r field bar value; do [ "$field $bar" != "$2 |" ] || echo "$value"; done
}
obeys() { case "$1,$2" in , | "True(1)," | ",False(0)" | "True(1),False(0)") return 0 ;; *) return 1 ;; esac; }
nv_tool=
for each in mstconfig mlxconfig; do ! command -v "$each" > /dev/null 2>&1 || nv_tool=$each; done
irqbalance="" pcc=
for each in "$root"/proc/[0-9]*/comm; do
  [ ! -r "$each" ] || read -r name 2> /dev/null < "$each" || continue
  case $name in irqbalance) irqbalance=yes ;; doca_pcc | doca_spcx_cc) pcc=$name ;; esac
done
firmware_dcqcn() {
  legacy=$(nv ROCE_CC_LEGACY_DCQCN) user=$(nv USER_PROGRAMMABLE_CC)
  found="ROCE_CC_LEGACY_DCQCN ${legacy:-absent}, USER_PROGRAMMABLE_CC ${user:-absent} (in force, next boot)"
  case $user in True*) found="$found; programmable congestion control is in its place" ;; *)
    case $legacy in False*) found="$found; ZTR-RTTCC is in its place, where both ends have it" ;; esac ;;
  esac
  set_both="$nv_tool -d ${bdf##*/} set ROCE_CC_LEGACY_DCQCN=1 USER_PROGRAMMABLE_CC=0, without an absent one,"
  case "$legacy$user" in *\?*)
    say "DCQCN in firmware" no "not reported: $legacy $user" \
      "root, mstflint 4.18 or later or NVIDIA MFT; kernel lockdown (Secure Boot) can deny PCI access"
    return ;;
  esac
  if [ "$pcc" ]; then say "DCQCN in firmware" no "ignored: $pcc runs, which is programmable congestion control" \
    "$pcc stopped, $set_both and a reset of firmware"
  elif obeys "${legacy% *}" "${user% *}"; then
    if rttcc_forced; then say "DCQCN in firmware" no "ignored: ZTR-RTTCC is forced (register PPCC)" \
      "$reg_tool -d ${bdf##*/} --reg_name PPCC --set cmd_type=1 --indexes $slot --yes, or a reset of firmware"
    elif obeys "${legacy#* }" "${user#* }"; then say "DCQCN in firmware" yes "acts" ""
    else say "DCQCN in firmware" no "acts, but not after the next boot: $found" "${set_both%,}"; fi
  elif obeys "${legacy#* }" "${user#* }"; then
    say "DCQCN in firmware" no "ignored until the next boot: $found" "a reset of firmware, or reboot"
  else say "DCQCN in firmware" no "ignored: $found" "$set_both and a reset of firmware"; fi
}
if [ "$rdma" ] && [ $((device_id)) -ge $((0x101d)) ]; then
  if [ "$nv_tool" ]; then firmware_dcqcn
  else say "DCQCN in firmware" no "neither mlxconfig nor mstconfig" "NVIDIA MFT, or the package mstflint"; fi
fi
[ -z "$irqs" ] || [ -z "$irqbalance" ] || say irqbalance no "runs, and moves interrupts" \
  "systemctl disable --now irqbalance, or no irq_cpus in the inventory"
if [ "$gpu" = none ]; then
  say "GPU driver" yes "not needed by jobs that replay a profile; one that computes needs $gpu_driver (gpu: check)" ""
else
  tool nvidia-smi "NVIDIA's driver; gpu: install in the inventory lets provision do it"
  has=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2> /dev/null < /dev/null)
  has=${has##*, }
  if [ -z "$has" ]; then : # reported above
  elif at_least "$has" "$gpu_driver"; then say "GPU driver" yes "$has" ""
  else say "GPU driver" no "$has" \
    "$gpu_driver or later, for trainers that compute; without such, gpu: none in the inventory"; fi
fi

# Causes of low performance, and programs that may change the NIC later. Sources: docs/reference/rack/sources.md.
# examination.py compares the lines marked "alike" between servers.
device=$root/sys/class/net/$nic/device
first_line "$device/current_link_width"; width=$first
first_line "$device/max_link_width"; widest=$first
first_line "$device/current_link_speed"; speed=$first
first_line "$device/max_link_speed"; fastest=$first
case $width,$speed in
  *,Unknown* | 0,* | *,) ;;
  *) if [ "$width,$speed" = "$widest,$fastest" ]; then say "PCIe link" yes "x$width at $speed" ""
    else say "PCIe link" no "x$width at $speed; the NIC can x$widest at $fastest" \
      "a slot of that width and generation, the card seated again, or the slot's lanes in the BIOS (\`lspci -vv\`)"; fi ;;
esac
first_line "$root/sys/class/net/$nic/carrier_changes" # boot and each \`provision\` make a few; the limit is a guess
[ "${first:-0}" -le 20 ] || say "carrier changes" no "$first since the driver was loaded" \
  "the cable or module cleaned or replaced; \`ethtool -m $nic\` and \`mlxlink -d ${bdf##*/} -m -c\` show its state"
of=$(ethtool -i "$nic" 2> /dev/null < /dev/null)
model="" release="" firmware=""
while read -r name value; do case $name in
  driver:) model=$value ;; version:) release=$value ;; firmware-version:) firmware=$value ;;
esac; done <<- SAID
	$of
SAID
[ -z "$model" ] || say "NIC driver" yes "$model $release" "" # alike
[ -z "$firmware" ] || say "NIC firmware" yes "$firmware" "" # alike; mlx5's ends with the board's PSID
identifier="" vendor="" encoding=""
while read -r name value; do case "$name $value" in
  "Identifier : "*) identifier=${value#: } ;;
  "Vendor name "*) vendor=${value#*: } ;;
  "Active FEC encoding: "*) encoding=${value#*: } ;;
esac; done <<- SAID
	$(ethtool -m "$nic" 2> /dev/null < /dev/null)
	$(ethtool --show-fec "$nic" 2> /dev/null < /dev/null)
SAID
[ -z "$encoding" ] || say FEC yes "$encoding" "" # alike
[ -z "$identifier" ] || say module yes "$identifier $vendor" "" # alike

first_line "$root/sys/kernel/security/lockdown"
closed="debugfs (DCQCN of driver: inbox) and registers of PCI devices (mstconfig, setpci)"
case $first in
  *"[integrity]"*) say "kernel lockdown" no "integrity: closes $closed" \
    "Secure Boot off in the BIOS; with driver: ofed only mstconfig and setpci need it" ;;
  *"[confidentiality]"*) say "kernel lockdown" no "confidentiality: closes $closed, and BPF's reads of kernel memory" \
    "Secure Boot off in the BIOS, no lockdown= on the kernel's command line" ;;
  *"[none]"*) say "kernel lockdown" yes "none" "" ;;
esac

has_cpu() ( # whether the list of CPUs $1, such as 0-7,16, has CPU $2
  IFS=,
  for each in $1; do [ "$2" -lt "${each%-*}" ] || [ "$2" -gt "${each#*-}" ] || exit 0; done
  exit 1
)
first_line "$device/numa_node"; node=$first
first_line "$device/local_cpulist"
if [ "$irqs" ] && [ "${node:--1}" -ge 0 ] && [ "$first" ]; then
  far=0 example=""
  IFS=", "
  for each in $irqs; do
    cpu=${each%-*}
    while [ "$cpu" -le "${each#*-}" ]; do
      has_cpu "$first" "$cpu" || far=$((far + 1)) example=$cpu
      cpu=$((cpu + 1))
    done
  done
  unset IFS
  if [ "$far" -gt 0 ]; then say irq_cpus no "$far CPUs, such as $example, are not on the NIC's NUMA node $node" \
    "irq_cpus: \"$first\", or a part of it"
  else say irq_cpus yes "on the NIC's NUMA node $node" ""; fi
fi

boot() { # of a network manager $1, the MTU $2 that it sets, and the remedy $3
  case $2 in "" | null | auto | 0 | "$mtu") ;; *)
    say "boot MTU" no "$1 sets $2 at the next boot or change of the link" "$3" ;;
  esac
}
boot netplan "$(netplan get "ethernets.$nic.mtu" 2> /dev/null < /dev/null)" "netplan set ethernets.$nic.mtu=$mtu"
connection=$(nmcli -g GENERAL.CON-UUID device show "$nic" 2> /dev/null < /dev/null)
[ -z "$connection" ] || boot NetworkManager \
  "$(nmcli -g 802-3-ethernet.mtu connection show "$connection" 2> /dev/null < /dev/null)" \
  "nmcli connection modify $connection 802-3-ethernet.mtu $mtu"

operators=
for each in "$root/var/lib/kubelet/pods/"*/containers/nic-configuration-daemon \
  "$root/var/lib/kubelet/pods/"*/containers/sriov-network-config-daemon; do
  [ ! -e "$each" ] || operators="$operators ${each##*/}"
done
[ -z "$operators" ] || say "NIC operator" no "Kubernetes runs$operators, which may set the NIC again" \
  "this node outside its nodeSelector (label of the node), or the same settings in its templates"

# GPUDirect RDMA between the server's GPUs and its NIC: accessible memory, and a short PCIe path. Sources: NVIDIA,
# "GPUDirect RDMA and GPUDirect Storage" (nvidia-peermem, or DMA-BUF with open kernel modules and Linux 5.12); NVIDIA,
# NCCL's troubleshooting (ACS and an IOMMU redirect peer-to-peer traffic through the CPU's root complex); the kernel's
# pci_regs.h (PCI_ACS_CTRL and its bits) and Documentation/ABI/testing/sysfs-kernel-iommu_groups.
there() { (cd -P "$1" 2> /dev/null && pwd -P); }
bridges() { # those above a device, given its path
  path=${1%/*}
  while :; do
    case ${path##*/} in *:??:??.?) printf '%s ' "${path##*/}" ;; *) return ;; esac
    path=${path%/*}
  done
}
way() { # from the NIC's path to a GPU's: how far, the less the nearer, and in words
  nic_rest=${1#*/devices/} gpu_rest=${2#*/devices/} nic_node="" gpu_node=
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
  version="" kernel=0.0
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
    # shellcheck disable=SC2015 # each of the conditions may fail
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
  redirecting="" setpci=$(command -v setpci)
  for each in $(bridges "$at") $(bridges "$gpu_at"); do # request and completion redirect, upstream forwarding
    control=$("${setpci:-:}" -s "$each" ECAP_ACS+6.w 2> /dev/null < /dev/null)
    [ $((0x0${control} & 0x1c)) = 0 ] || redirecting="$redirecting $each"
  done
  if [ -z "$setpci" ]; then say "GPUDirect ACS" no "setpci not found" "$manager install pciutils"
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
