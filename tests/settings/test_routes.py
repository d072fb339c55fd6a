# SPDX-License-Identifier: Apache-2.0
"""Routes of every form that `ip route` makes: they are read, changed, and restored exactly."""

import json
import os
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from roundabout.settings import settings_linux
from roundabout.settings.settings_host import SettingsError, ToolError

pytestmark = pytest.mark.unit

FORMS = [
    "dev d1",
    "dev d1 scope global",
    "via 10.0.0.2",
    "via 10.0.9.2 dev d1 onlink",
    "via inet6 fd00::2 dev d1",
    "encap ip id 5 dst 10.9.9.9 dev d1",
    "nhid 12",
    "nhid 20",
    "nexthop via 10.0.0.2 weight 3 nexthop via 10.0.9.2 dev d2 onlink",
    "nexthop via inet6 fd00::2 dev d1 nexthop encap ip id 5 dst 10.9.9.9 dev d2",
]
BESIDE = [
    "",
    "proto static src 10.0.0.1 metric 10",
    "tos 0x10",
    "mtu lock 1400 initcwnd 20 initrwnd 4 window 1000 advmss 1300",
    "rtt 30ms rttvar 12ms ssthresh lock 30 cwnd 44 reordering 5 hoplimit 5 features ecn fastopen_no_cookie 1",
    "congctl lock reno rto_min 300ms",
    "congctl cubic rto_min 17400ms quickack 1",
]
ROUTES = [f"{beside} {form}".split() for form, beside in product(FORMS, BESIDE)]
WANTED = {"congctl": "reno", "rto_min_ms": 174, "quickack": 1}

NETWORK = """
set -e
ip link add d1 type veth peer name p1
ip link add d2 type veth peer name p2
ip addr add 10.0.0.1/24 dev d1
ip -6 addr add fd00::1/64 dev d1 nodad
for each in p1 p2 d1 d2; do ip link set $each up; done
ip nexthop add id 12 via 10.0.0.2 dev d1
ip nexthop add id 13 via 10.0.9.2 dev d2 onlink
ip nexthop add id 20 group 12,3/13
ip route add 10.7.0.0/24 nhid 12
exec "$@"
"""

# Each route as `ip` shows it: at first, while it is set, and once it is as it was.
WALK = """
import json, subprocess, sys
from pathlib import Path
from roundabout.settings import settings_linux as routes
from roundabout.settings.settings_host import Host

def shown():
    return subprocess.run(["ip", "-d", "-4", "route", "show", "10.8.0.0/24"], capture_output=True, text=True).stdout

host, (all_routes, wanted) = Host(Path("/"), Path("/")), json.loads(sys.argv[1])
for route in all_routes:
    added = subprocess.run(["ip", "-4", "route", "add", "10.8.0.0/24", *route], capture_output=True, text=True)
    if added.returncode:
        print(json.dumps({"lacks": added.stderr}))
        continue
    shown_routes = {"found": shown()}
    before = routes.read_route(host, "10.8.0.0/24", wanted)
    routes.write_route(host, "10.8.0.0/24", wanted)
    shown_routes.update(read=routes.read_route(host, "10.8.0.0/24", wanted), set=shown())
    routes.write_route(host, "10.8.0.0/24", before)
    shown_routes.update(restored=shown())
    print(json.dumps(shown_routes))
    own = route[:2] if "tos" in route else []
    subprocess.run(["ip", "-4", "route", "del", "10.8.0.0/24", *own], check=True)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="makes routes in a namespace of its own")
@pytest.mark.parametrize("shows_next_hops", [1, 0])
def test_every_form_of_a_route_is_read_set_and_restored_exactly(shows_next_hops: int) -> None:
    """Try both forms: the kernel prints a next-hop id alone if `nexthop_compat_mode` is 0."""
    script = f"sysctl -qw net.ipv4.nexthop_compat_mode={shows_next_hops}\n{NETWORK}"
    command = ["unshare", "--net", "sh", "-c", script, "sh", sys.executable, "-c", WALK, json.dumps([ROUTES, WANTED])]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(root)})
    assert done.returncode == 0, done.stderr
    reported = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(reported) == len(ROUTES)
    for route, each in zip(ROUTES, reported, strict=True):
        if "encap" in route and "lwt encapsulation type not supported" in each.get("lacks", ""):
            continue
        assert "lacks" not in each, (route, each)
        assert each["restored"] == each["found"] != each["set"], route
        assert each["read"] == WANTED, route


class Said:
    """A host whose `ip route` shows one line, and notes its arguments; its kernel has reno and cubic."""

    def __init__(self, root: Path, shows: str, refuses: bool = False) -> None:
        self.root, self.shows, self.refuses = root, shows, refuses
        self.reported: tuple[str, ...] = ()
        (root / "proc/sys/net/ipv4").mkdir(parents=True)
        (root / "proc/sys/net/ipv4/tcp_available_congestion_control").write_text("reno cubic\n")

    def run(self, _tool: str, *words: str) -> str:
        if "change" not in words:
            return "" if "default" in words else self.shows
        self.reported = words
        if self.refuses:
            raise ToolError("Error: some reason")
        return ""


@pytest.mark.parametrize(
    ("shown", "reported"),
    [
        ("10.8.0.0/24  encap mpls  100/200 tos 0x10 via 10.0.0.2 dev d1 ",
         "tos 0x10 encap mpls 100/200 via 10.0.0.2 dev d1 congctl reno"),
        ("10.8.0.0/24 nhid 9  encap mpls  100 via inet6 fd00::2 dev d1 proto bgp onlink linkdown ",
         "nhid 9 proto bgp congctl reno"),
        ("10.8.0.0/24 proto bgp metric 20 \\\tnexthop  encap mpls  100 via 10.0.0.2 dev d1 weight 1 dead linkdown "
         "\\\tnexthop via 10.0.1.2 dev trap weight 2 onlink ",
         "proto bgp metric 20 congctl reno nexthop encap mpls 100 via 10.0.0.2 dev d1 weight 1 "
         "nexthop via 10.0.1.2 dev trap weight 2 onlink"),
    ],
)  # fmt: skip
def test_route_attributes_are_written_as_the_kernel_shows_them(tmp_path: Path, shown: str, reported: str) -> None:
    host: Any = Said(tmp_path, shown)
    settings_linux.write_route(host, "10.8.0.0/24", {"congctl": "reno"})
    assert " ".join(host.reported) == f"-4 route change 10.8.0.0/24 {reported}"


@pytest.mark.parametrize(
    ("congctl", "hint"), [("bbr", "available here: reno cubic; load the transport first"), ("reno", "")]
)
def test_a_refusal_hints_at_the_transport_only_where_that_is_missing(tmp_path: Path, congctl: str, hint: str) -> None:
    host: Any = Said(tmp_path, "10.8.0.0/24 dev d1 scope link ", refuses=True)
    with pytest.raises(SettingsError, match="some reason") as caught:
        settings_linux.write_route(host, "10.8.0.0/24", {"congctl": congctl})
    assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("shown", "message"),
    [
        ("blackhole 10.8.0.0/24 ", "found a route of type blackhole, expected one to a data network"),
        ("10.8.0.0/24 dev d1 metric 1 \n10.8.0.0/24 dev d2 metric 2 ", "found 2 routes, expected one"),
    ],
)
def test_ambiguous_and_unusable_routes_are_refused(tmp_path: Path, shown: str, message: str) -> None:
    host: Any = Said(tmp_path, shown)
    with pytest.raises(SettingsError, match=message):
        settings_linux.read_route(host, "10.8.0.0/24", ["congctl"])


@pytest.mark.skipif(os.geteuid() != 0, reason="makes routes in a namespace of its own")
@pytest.mark.parametrize("route", ["dev d2", "nhid 20", "nexthop dev d1 nexthop dev d2"])
def test_routes_beside_the_default_route_are_not_changed(route: str) -> None:
    script = f"sysctl -qw net.ipv4.nexthop_compat_mode=0\n{NETWORK}"
    program = (
        "from pathlib import Path; from roundabout.settings import settings_linux, settings_host; import subprocess;"
        "subprocess.run(['ip', 'route', 'add', 'default', 'nhid', '13'], check=True);"
        f"subprocess.run(['ip', 'route', 'add', '10.8.0.0/24', *'{route}'.split()], check=True);"
        "settings_linux.read_route(settings_host.Host(Path('/'), Path('/')), '10.8.0.0/24', ['congctl'])"
    )
    command = ["unshare", "--net", "sh", "-c", script, "sh", sys.executable, "-c", program]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(root)})
    assert "leaves by d2, which has the active default route: expected a data network" in done.stderr


READ = Path(__file__).with_name("read_route.py")


TWO_NICS = (
    "link add ens1np0 type veth peer name ens4np0",
    "link set ens1np0 up",
    "link set ens4np0 up",
    "addr add 10.100.40.135/24 dev ens1np0 noprefixroute",
    "addr add 10.100.41.134/24 dev ens4np0 noprefixroute",
)


@pytest.mark.skipif(os.geteuid() != 0, reason="makes routes in a namespace of its own")
@pytest.mark.parametrize(("data_nic", "metric", "refused"), [
    ("ens4np0", "4096", False), ("ens4np0", "99", True), ("ens1np0", "4096", True)
])  # fmt: skip
def test_the_default_route_with_the_lowest_metric_counts(data_nic: str, metric: str, refused: bool) -> None:
    """The routes are a real server's, whose data NIC has a default route from DHCP, too."""
    shown = Path(__file__).parents[1] / "cases/rack/route-two-defaults.txt"
    routes = shown.read_text().replace("metric 4096", f"metric {metric}")
    batch = "".join(
        f"{line}\n" for line in [*TWO_NICS, *(f"route add {line}" for line in reversed(routes.splitlines()))]
    )
    prefix = next(line.split()[0] for line in routes.splitlines() if line[0].isdigit() and f"dev {data_nic} " in line)
    command = ["unshare", "--net", "sh", "-ec", 'ip -batch - && exec "$@"', "sh", sys.executable, str(READ), prefix]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(command, input=batch, capture_output=True, text=True, env=environment)
    assert done.returncode == int(refused), done.stderr
    assert (f"leaves by {data_nic}, which has the active default route" in done.stderr) == refused


RAILS = """
link add enp83s0np0 type veth peer name leaf0
link add enp105s0np0 type veth peer name leaf1
link set enp83s0np0 up
link set enp105s0np0 up
link set leaf0 up
link set leaf1 up
addr add 192.168.1.201/31 dev enp83s0np0
addr add 192.168.1.203/31 dev enp105s0np0
rule add from 192.168.1.203 table 102
route add unreachable 192.168.0.0/16 table 102
route add default via 192.168.1.202 dev enp105s0np0 table 102
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="makes routes in a namespace of its own")
@pytest.mark.parametrize(("removed", "status"), [
    ("route del unreachable 192.168.0.0/16 table 102", 0),
    ("route del default table 102", 1),
])  # fmt: skip
def test_a_table_of_one_nic_may_have_a_route_to_all_destinations(tmp_path: Path, removed: str, status: int) -> None:
    """AMD's guide for servers with several NICs has a table for each, with a default route alone.

    Names and addresses are its own (instinct.docs.amd.com, system acceptance, network configuration).
    """
    document = json.dumps({"route": {"192.168.1.216/31 table 102": {"congctl": "reno"}}})
    program = Path(settings_linux.__file__).with_name("settings.py")
    script = f"""
        run() {{ {sys.executable} {program} $1 --state {tmp_path} --owner o; }}
        ip -batch - && ip route show table 102 > {tmp_path}/before
        echo '{document}' | run apply || exit 1
        ip route show table 102 > {tmp_path}/set
        run restore && ip route show table 102 > {tmp_path}/after
    """
    command = ["unshare", "--net", "sh", "-c", script]
    done = subprocess.run(command, input=RAILS + removed + "\n", capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    if status:
        assert "found a route of type unreachable, expected one to a data network" in done.stderr
        return
    before, found, after = ((tmp_path / name).read_text() for name in ("before", "set", "after"))
    assert found.split() == [*before.split(), "congctl", "reno"]
    assert after == before
