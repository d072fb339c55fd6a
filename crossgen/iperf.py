#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Load a path with iperf3 over 1 to 10 connections: no more than the load requires.

    iperf.py server --bind A --port P [--congestion C] [--secret]
    iperf.py load --to A --port P --load-gbps L [--parallel N] [--dscp D] [--secret]

`load` prints {"event":"ready"}, begins at the instant in the line `start MONOTONIC_NS` on standard input with -P N,
takes one connection more whenever the load is not reached, and continues until standard input closes. Then it prints
{"event":"summary"}: the achieved load as the receiver counts it, the load of each second, and the sender's counts. A
server prints {"event":"ready"} when it listens. Started by root, iperf runs there as an unprivileged user, whose only
right is to use the congestion control C of its clients. Each ends its iperf, and itself, when standard input closes or
on SIGTERM or SIGINT. With --secret, the first line on standard input is `secret TEXT`: TEXT is the base64 of a JSON
object with `password`, and with the `private_key` and `public_key` (RSA, PEM) that iperf3 encrypts it with; a server
accepts no client without it. Exit status: 0 done; 1 failed (message on standard error); 2 bad usage.
"""

import argparse
import base64
import contextlib
import functools
import hashlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
from typing import Any, Callable, Dict, Iterator, List, Optional, TypeVar

REACHED = 0.98  # share of the requested load that counts as reached
HELP_TIMEOUT_S = 10  # time limit for iperf3 to print its help
REST_S = 3.0  # time within which a server is ready for the next client
NOBODY = "65534"  # user and group id of iperf's processes when started by root
USER = "roundabout"  # name of iperf3's user that is authenticated by the secret
Result = TypeVar("Result")


class IperfError(Exception):
    """An error for a run of iperf that failed."""


@contextlib.contextmanager
def run_iperf(argv: List[str], stdout: int = subprocess.PIPE, password: str = "") -> Iterator["subprocess.Popen[str]"]:
    """Yield a running iperf, which ends with the block."""
    env = {**os.environ, "IPERF3_PASSWORD": password}
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=pipe,
            text=True,
            errors="replace",
            env=env,
            close_fds=False,
        )
    except OSError as error:
        raise IperfError(f"cannot start {argv[0]}: {error.strerror}") from error
    with process:
        try:
            yield process
        finally:
            process.kill()


def output(argv: List[str], limit_s: float) -> str:
    """Return the output of iperf, which ends by itself within `limit_s`; if iperf fails, its error messages follow."""
    with run_iperf(argv) as process:
        try:
            out, errors = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired as error:
            raise IperfError(f"{argv[0]} was expected to end within {limit_s:.0f} s, and did not") from error
        if process.returncode == 0:
            return out
        if not out.strip():
            raise IperfError(f"{argv[0]} failed: {one_line(errors) or f'status {process.returncode}, without output'}")
        return out + "\n" + errors


def one_line(text: str) -> str:
    """Return the beginning of a text, on one line, for a message."""
    words = " ".join(text.split())
    return words if len(words) <= 300 else words[:300] + " ..."


def parse_second(line: str) -> Optional[Dict[str, float]]:
    """Parse a line `[SUM]  1.00-2.00  sec  4.75 MBytes  39845 Kbits/sec ...`.

    Return begin and end, s, and the rate, Gbit/s, of the second; None for lines of totals and any other line.
    """
    decimal = r"([0-9]{1,18}(?:\.[0-9]{1,18})?)"
    found = re.match(rf"\[.{{3}}\] +{decimal}-{decimal} +sec .* {decimal} Kbits/sec", line)
    if found is None or line.rstrip().endswith(("sender", "receiver")):
        return None
    start_s, end_s, kbps = map(float, found.groups())
    return {"start_s": start_s, "end_s": end_s, "gbps": kbps / 1e6} if end_s > start_s else None


def patiently(measure: Callable[[], Result]) -> Result:
    """Return the result of `measure`, which is repeated while a server that has just lost a client refuses the next."""
    deadline = time.monotonic() + REST_S
    while True:
        try:
            return measure()
        except IperfError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def load(options: argparse.Namespace) -> None:
    """Load the path from the instant in the `start` line until standard input closes, and print the summary."""
    print_event({"event": "ready"})
    line = sys.stdin.readline().split()
    if len(line) != 2 or line[0] != "start":
        raise KeyboardInterrupt
    if not re.fullmatch("[0-9]{1,19}", line[1]):
        raise IperfError(f"found `start {line[1][:40]}`, expected `start MONOTONIC_NS` on standard input")
    start_ns = int(line[1])
    time.sleep(max(0.0, (start_ns - time.monotonic_ns()) / 1e9))
    tries: List[Dict[str, Any]] = []
    seconds: List[Dict[str, float]] = []
    for parallel in range(options.parallel, options.most_parallel + 1):
        one = functools.partial(load_with, options, parallel, start_ns)
        reported = one() if parallel == options.parallel else patiently(one)
        if reported:
            tries.append({"parallel": parallel, "achieved_gbps": mean_gbps(reported)})
        seconds += reported
        if input_closed():
            break
    if not tries:
        raise IperfError("expected to send for a while, found standard input closed at once")
    requested = {"tool": "iperf3", "asked_gbps": options.load_gbps, **tries[-1], "tries": tries}
    print_event({"event": "summary", **requested, "achieved_gbps": mean_gbps(seconds), "seconds": seconds})


def load_with(options: argparse.Namespace, parallel: int, start_ns: int) -> List[Dict[str, float]]:
    """Run iperf3 with `parallel` connections until standard input closes, or until the load is missed.

    A missed load ends the run only if one more connection is allowed. Returns the load of each second from `start_ns`.
    """
    began_s = (time.monotonic_ns() - start_ns) / 1e9
    bits = str(int(options.load_gbps * 1e9 / parallel))
    argv = ["iperf3", "-c", options.to, "-p", str(options.port), "-b", bits, "-P", str(parallel)]
    if options.congestion:
        argv += ["-C", options.congestion]
    if options.dscp:
        argv += ["-S", str(options.dscp << 2)]  # --dscp does not shift before 3.11 (esnet/iperf, #1162)
    if options.bind:
        argv += ["-B", options.bind]
    sums = "[SUM]" if parallel > 1 else "["
    seconds: List[Dict[str, float]] = []
    was_short = False
    secret = options.credentials
    if secret:
        argv += ["--username", USER, "--rsa-public-key-path", in_memory(secret["public_key"])]
    with run_iperf([*argv, "-t", "0", "-f", "k", "--forceflush"], password=secret.get("password", "")) as process:
        for line in lines(process):
            second = parse_second(line) if line.startswith(sums) else None
            if second is None or was_short:
                continue
            seconds.append(second)
            lasted = second["end_s"] >= options.probe_s and parallel < options.most_parallel
            if lasted and mean_gbps(seconds) < REACHED * options.load_gbps:
                was_short = True
                process.send_signal(signal.SIGINT)
        if not was_short and not input_closed():
            errors = one_line(process.communicate()[1])
            raise IperfError(errors or f"iperf3 ended with status {process.returncode}, and did not say why")
    return [{**each, "start_s": began_s + each["start_s"], "end_s": began_s + each["end_s"]} for each in seconds]


def input_closed() -> bool:
    """Return True if standard input is readable, which means closed, because no more input is expected."""
    return bool(select.select([0], [], [], 0)[0])


def lines(process: "subprocess.Popen[str]") -> Iterator[str]:
    """Yield a process's lines of output. Once standard input closes, interrupt it, so that iperf3 prints its totals."""
    printed = process.stdout.fileno()  # type: ignore[union-attr]
    known = b""
    sources = [printed, 0]
    while True:
        ready, _, _ = select.select(sources, [], [])
        if 0 in ready and not os.read(0, 4096):
            sources = [printed]
            process.send_signal(signal.SIGINT)
        if printed in ready:
            read = os.read(printed, 65536)
            if not read:
                return
            *whole, known = (known + read).split(b"\n")
            for line in whole:
                yield line.decode(errors="replace")


def mean_gbps(seconds: List[Dict[str, float]]) -> float:
    """Return the mean load of these seconds, Gbit/s."""
    lasted_s = sum(each["end_s"] - each["start_s"] for each in seconds)
    return sum(each["gbps"] * (each["end_s"] - each["start_s"]) for each in seconds) / lasted_s


def print_event(event: Dict[str, Any]) -> None:
    """Print an event as one line of JSON, and flush it."""
    print(json.dumps(event, separators=(",", ":")), flush=True)


def server(options: argparse.Namespace) -> None:
    """Run iperf3's server until a signal, or until standard input closes."""
    argv = [
        *unprivileged_prefix(options.congestion),
        "iperf3",
        "-s",
        "-B",
        options.bind,
        "-p",
        str(options.port),
    ]
    with run_iperf(
        [*argv, *(authentication_options(options.credentials) if options.credentials else [])],
        stdout=subprocess.DEVNULL,
    ) as process:
        while process.poll() is None and not listens(options.port):
            time.sleep(0.02)
        if process.poll() is None:
            print_event({"event": "ready"})
        _, errors = process.communicate()
        raise IperfError(f"iperf3 ended: {one_line(errors)}")


def take_secret() -> Dict[str, str]:
    """Return the JSON object in the line `secret TEXT` on standard input. Raises IperfError for any other line."""
    word, _, text = sys.stdin.readline().partition(" ")
    if not text:
        raise KeyboardInterrupt
    try:
        reported: Dict[str, str] = json.loads(base64.b64decode(text)) if word == "secret" else {}
        return {name: reported[name] for name in ("password", "private_key", "public_key")}
    except (ValueError, LookupError, TypeError):
        raise IperfError("expected `secret TEXT` as the first line on standard input, found something else") from None


def authentication_options(secret: Dict[str, str]) -> List[str]:
    """Return the options by which iperf3's server accepts only clients that have the secret."""
    known = hashlib.sha256(("{%s}%s" % (USER, secret["password"])).encode()).hexdigest()
    words = ["--rsa-private-key-path", in_memory(secret["private_key"])]
    words += ["--authorized-users-path", in_memory("%s,%s\n" % (USER, known))]
    has_skew = "--time-skew-threshold" in output(["iperf3", "--help"], HELP_TIMEOUT_S)
    return words + (["--time-skew-threshold", str(10**9)] if has_skew else [])


def in_memory(text: str) -> str:
    """Return the path of an in-memory file with this content, which exists as long as this process and its children."""
    descriptor = os.memfd_create("iperf", 0)
    os.write(descriptor, text.encode())
    return "/dev/fd/%d" % descriptor


def unprivileged_prefix(congestion: Optional[str]) -> List[str]:
    """Return the command prefix that takes root's rights from a server, because strangers may connect to it."""
    if os.geteuid() != 0:
        return []
    with open("/proc/sys/net/ipv4/tcp_allowed_congestion_control", encoding="ascii") as allowed:
        needs_more = congestion is not None and congestion not in allowed.read().split()
    kept = ",+net_admin" if needs_more else ""
    identity = ["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--no-new-privs", "--pdeathsig", "KILL"]
    return [
        "setpriv",
        *identity,
        *("--%s=-all%s" % (each, kept) for each in ("inh-caps", "ambient-caps", "bounding-set")),
    ]


def listens(port: int) -> bool:
    """Return True if a socket of this network namespace listens at a port. A connection would count as a test."""
    with open("/proc/net/tcp", encoding="ascii") as sockets:
        rows = [line.split() for line in sockets][1:]
    return any(row[1].endswith(":%04X" % port) and row[3] == "0A" for row in rows)


def end_with_input() -> None:
    """Start a thread that ends the program, as SIGTERM would, once standard input closes."""

    def watch() -> None:
        while os.read(0, 4096):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def stop(*_: Any) -> None:
    """Handle a signal by exiting."""
    raise KeyboardInterrupt


def positive_gbps(text: str) -> float:
    """Return a load in Gbit/s. Raises an error below 10 bit/s per connection, because iperf takes 0 for no limit."""
    gbps = float(text)
    if not 1e-7 <= gbps <= 1e5:
        raise argparse.ArgumentTypeError(f"{text} is not from 1e-7 to 1e5")
    return gbps


def parse() -> argparse.Namespace:
    """Return the options of the command line, and exit with status 2 if they are wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    roles = parser.add_subparsers(dest="role", required=True)
    for role in ("server", "load"):
        each = roles.add_parser(role)
        each.add_argument("--port", type=int, default=5201)
        each.add_argument("--secret", action="store_true", help="read a secret from standard input")
        if role == "server":
            each.add_argument("--bind", required=True, help="address to listen at")
            each.add_argument("--congestion", help="what its clients' connections use")
            continue
        each.add_argument("--to", required=True, help="the server's address")
        each.add_argument("--bind", help="address to send from")
        each.add_argument("--load-gbps", type=positive_gbps, required=True)
        each.add_argument("--parallel", type=int, default=1, help="connections at first")
        each.add_argument("--congestion", help="their congestion control")
        each.add_argument("--dscp", type=int, choices=range(64), metavar="D", default=0, help="of packets, both ways")
        each.add_argument("--probe-s", type=int, default=2, help="how long each -P is tried")
        each.add_argument("--most-parallel", type=int, default=10, help="the last -P that is tried")
    return parser.parse_args()


def main() -> int:
    """Run the role on the command line, and return the exit status."""
    options = parse()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    try:
        options.credentials = take_secret() if options.secret else {}
        if options.role == "server":
            end_with_input()
        {"server": server, "load": load}[options.role](options)
    except KeyboardInterrupt:
        return 0
    except IperfError as error:
        print(f"iperf.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
