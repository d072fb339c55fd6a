# SPDX-License-Identifier: Apache-2.0
"""PyTorch's store by which workers meet, listening at the first worker's address alone, for the job's hosts alone.

PyTorch's own socket listens at all addresses of a host, whatever address is given, and the store has no authentication
(PyTorch's SECURITY.md). The kernel therefore drops what other addresses send. That stops neither a host that forges a
worker's address on the path, nor programs on the workers' hosts.
"""

import ctypes
import os
import socket
import struct
import sys

GIVEN = "ROUNDABOUT_STORE_FD"  # environment variable with the listening socket that worker_launcher.py opened as root
SO_ATTACH_FILTER = 26
# Instructions of classic BPF (linux/bpf_common.h, linux/filter.h): load a word, compare it, return.
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
SOURCE_ADDRESS = 0xFFF00000 + 12  # SKF_NET_OFF, and the place of the source address in an IPv4 header
WHOLE, NOTHING = 0xFFFFFFFF, 0  # bytes of a packet to keep


def create_store(tcp_store, host, port, workers, holds, timeout, hosts=(), **options):
    """Return PyTorch's store, whose class is `tcp_store`. The one that `holds` it accepts connections of `hosts` only.

    PyTorch before 2.1 cannot use a given socket: it listens at all addresses, and a line on standard error reports it.
    """
    arguments = (host, port, workers, holds, timeout)
    if not holds:
        return tcp_store(*arguments, **options)
    given = os.environ.pop(GIVEN, None)
    descriptor = listen(host, port, hosts).detach() if given is None else int(given)  # the store closes it
    # PyTorch 2.4 cannot give a socket to its newer server, and 2.1 has no choice of servers.
    for how in ({"use_libuv": False}, {}):
        try:
            return tcp_store(*arguments, master_listen_fd=descriptor, **how, **options)
        except TypeError:  # an unknown option, found before the store begins
            continue
    os.close(descriptor)
    print("this PyTorch has no master_listen_fd: its store listens at all addresses", file=sys.stderr)
    return tcp_store(*arguments, **options)


def listen(host, port, hosts):
    """Return a socket that listens at an IPv4 address, and to which the kernel lets the addresses `hosts` only.

    Newer kernels (found with 6.18) let only root filter TCP. Without it, a line on standard error reports the lack.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            accept_only(listener, hosts)
        except PermissionError:
            print("only root may filter TCP on this kernel: the store accepts all hosts", file=sys.stderr)
        listener.bind((host, port))
        listener.listen()
    except OSError:
        listener.close()
        raise
    return listener


def accept_only(listener, hosts):
    """Let the kernel drop segments of all IPv4 addresses but `hosts`, before they reach the socket."""
    code = [(LOAD, 0, 0, SOURCE_ADDRESS)]
    for each in sorted(set(hosts)):
        (address,) = struct.unpack("!I", socket.inet_aton(each))
        code += [(JUMP_IF_EQUAL, 0, 1, address), (RETURN, 0, 0, WHOLE)]
    code.append((RETURN, 0, 0, NOTHING))
    instructions = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *each) for each in code))
    program = struct.pack("@HP", len(code), ctypes.addressof(instructions))
    listener.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)
