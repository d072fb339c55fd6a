#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints one line for each fact about a host with the given interfaces: `name<TAB>value`, with an empty value if unknown.
# Facts about interfaces behind the first have the interface behind their names. It reads settings of the NIC's firmware and never sets them: fields of the register ROCE_ACCL (mstflint's
# register_access_table.adb), and the current NV configuration (mlxconfig_host.db). Each NV setting is queried
# separately, because a query fails as a whole if the device lacks one of its settings.
either() { command -v "mlx$1" || command -v "mst$1"; }
accelerations() {
  "$(either reg)" -d "$device" --reg_name ROCE_ACCL --get < /dev/null |
    sed -n 's/^ *\(roce_adp_retrans_en\|roce_tx_window_en\|roce_slow_restart[a-z_]*_en\) *| *\(0x[0-9a-f]*\).*/\1=\2/p'
}
nv() {
  for each; do
    "$(either config)" -d "$device" -e q "$each" < /dev/null |
      sed -n "s/^[ *]*\($each\)  *[^ ]*  *\([^ ]*\)  *[^ ]* *$/\1=\2/p"
  done
}
fact() { printf '%s\t%s\n' "$1" "$(eval "$2" 2>/dev/null | tr '\n\t' '; ' | sed 's/; *$//')"; }
fact kernel 'uname -rv'
fact cpu 'sed -n "s/^model name[^:]*: //p" /proc/cpuinfo | sort | uniq -c | sed "s/^ *//"'
fact sysctls 'cd /proc/sys/net/ipv4 && grep -s . tcp_congestion_control tcp_ecn tcp_rmem tcp_wmem tcp_no_metrics_save'
fact qdiscs 'tc qdisc show'
nic_facts() { # of the interface $1; $2 is behind their names
  device=$(basename "$(readlink -f "/sys/class/net/$1/device")")
  case $device in *.1) port=2 ;; *) port=1 ;; esac
  of_congestion="ROCE_CC_PRIO_MASK_P$port ROCE_CC_LEGACY_DCQCN USER_PROGRAMMABLE_CC PCC_INT_EN ROCE_RTT_RESP_DSCP_P$port"
  fact "offloads$2" "ethtool -k $1 | sed -n 's/^\([a-z]*-[a-z-]*offload\): /\1=/p'"
  fact "nic$2" "ethtool -i $1"
  fact "RoCE acceleration$2" accelerations
  fact "NV config$2" "nv $of_congestion ZERO_TOUCH_TUNING_ENABLE ROCE_ADAPTIVE_ROUTING_EN"
  fact "link$2" "ip -d -o link show dev $1"
}
nic_facts "$1" ""
fact iproute2 'ip -V'
fact ethtool 'ethtool --version'
fact python 'python3 --version'
shift
for interface; do nic_facts "$interface" " $interface"; done
