# SPDX-License-Identifier: Apache-2.0
"""Return the control of DCBX on a network interface to the firmware, like `mlnx_qos -d fw` (mlnx-tools, dcbnetlink.py).

    dcbx_to_firmware.py IF

The program sets DCBX without any flag. iproute2's `dcb dcbx set` cannot do this, because it prints its help without a
flag. Constants are from linux/dcbnl.h and linux/rtnetlink.h.
"""

import errno
import os
import socket
import struct
import sys

RTM_SETDCB, DCB_CMD_SDCBX, DCB_ATTR_IFNAME, DCB_ATTR_DCBX = 79, 23, 1, 14
NLMSG_ERROR, NLM_F_REQUEST = 2, 1
NLMSG_HEADER, DCB_HEADER, ATTRIBUTE_HEADER = 16, 4, 4  # sizes of headers, bytes


def attribute(kind: int, data: bytes) -> bytes:
    """Return the bytes of one attribute of a netlink message, with padding."""
    return struct.pack("=HH", ATTRIBUTE_HEADER + len(data), kind) + data + bytes(-len(data) % 4)


def give_back(interface: str) -> int:
    """Return the control of DCBX on `interface` to the firmware. Return 0 or an errno."""
    flags = attribute(DCB_ATTR_IFNAME, interface.encode() + b"\0") + attribute(DCB_ATTR_DCBX, b"\0")
    body = struct.pack("=BBH", socket.AF_UNSPEC, DCB_CMD_SDCBX, 0) + flags
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as netlink:
        netlink.send(struct.pack("=IHHII", NLMSG_HEADER + len(body), RTM_SETDCB, NLM_F_REQUEST, 0, 0) + body)
        answer = netlink.recv(4096)
    if struct.unpack_from("=H", answer, 4)[0] == NLMSG_ERROR:
        return -int(struct.unpack_from("=i", answer, NLMSG_HEADER)[0])
    refused = answer[NLMSG_HEADER + DCB_HEADER + ATTRIBUTE_HEADER]  # by the driver, which says no more
    return errno.EINVAL if refused else 0


if __name__ == "__main__":
    number = give_back(sys.argv[1])
    sys.exit(os.strerror(number) if number else 0)
