# SPDX-License-Identifier: Apache-2.0
"""What a manifest says of hosts: their kernels, settings and tools."""

from roundabout.runner.hosts.programs import call
from roundabout.runner.trial.bench import Bench

# One line a fact: `name<TAB>value`; what a host lacks is left empty.
HOST_SCRIPT = r"""
fact() { printf '%s\t%s\n' "$1" "$(eval "$2" 2>/dev/null | tr '\n\t' '; ' | sed 's/; *$//')"; }
fact kernel 'uname -rv'
fact cpu 'sed -n "s/^model name[^:]*: //p" /proc/cpuinfo | sort | uniq -c | sed "s/^ *//"'
fact sysctls 'cd /proc/sys/net/ipv4 && grep -s . tcp_congestion_control tcp_ecn tcp_rmem tcp_wmem tcp_no_metrics_save'
fact qdiscs 'tc qdisc show'
fact offloads "ethtool -k $1 | sed -n 's/^\([a-z]*-[a-z-]*offload\): /\1=/p'"
fact nic "ethtool -i $1"
fact link "ip -d -o link show dev $1"
fact iproute2 'ip -V'
fact ethtool 'ethtool --version'
fact python 'python3 --version'
"""


def of_hosts(bench: Bench) -> dict[str, dict[str, str]]:
    """Kernel, CPU, settings, offloads and tool versions of every host."""
    answers = bench.each(
        lambda host: call(bench.connections[host.name], ["sh", "-c", HOST_SCRIPT, "facts", host.interface])
    )
    return {
        host: dict(line.split("\t", 1) for line in answer.stdout.splitlines() if "\t" in line)
        for host, answer in answers.items()
    }
