# SPDX-License-Identifier: Apache-2.0
"""Prints files, folders, links and tools' output of this host as JSON, and changes nothing.

Its argument is the request that roundabout/testbeds/rack/stub_recorder.py makes.
"""

import glob
import json
import os
import shlex
import shutil
import subprocess
import sys

CALL_S = 20


class Recorder:
    """The files below `root` that were found so far, with the folders and links on their ways."""

    def __init__(self, root, nic):
        self.root = root
        self.files, self.folders, self.links = {}, set(), {}
        device = root + "/sys/class/net/" + nic + "/device"
        self.names = {"nic": nic, "bdf": os.path.basename(os.path.realpath(device))}
        self.names["rdma"] = self.rdma_device(nic)
        shown = answer_of(["nmcli", "-g", "GENERAL.CON-UUID", "device", "show", nic])
        self.names["connection"] = (shown and shown["stdout"].strip()) or "none"

    def rdma_device(self, nic):
        """Return the first RDMA device by name below a NIC, or the first that names it, or `none`."""
        below = glob.glob(self.root + "/sys/class/net/" + nic + "/device/infiniband/*")
        parents = glob.glob(self.root + "/sys/class/infiniband/*/parent")
        naming = [os.path.dirname(path) for path in parents if self.read(path[len(self.root) :]).strip() == nic]
        return os.path.basename((sorted(below) or sorted(naming) or ["none"])[0])

    def named(self, text):
        """Return a text with the names of the NIC in it."""
        for name, value in self.names.items():
            text = text.replace("{" + name + "}", value)
        return text

    def find(self, pattern):
        """Return the paths below `root` that match a pattern."""
        return [path[len(self.root) :] for path in sorted(glob.glob(self.root + "/" + self.named(pattern)))]

    def read(self, path):
        """Return a file's content, or an empty text if it cannot be read."""
        try:
            with open(self.root + path, errors="replace") as file:
                return file.read(65536)
        except OSError:
            return ""

    def add(self, path, read):
        """Add every link on the way to a path, and what lies at its end, with the content that `read` returns."""
        root, here, parts = self.root, "", path.split("/")
        while parts:
            part = parts.pop(0)
            if part == "..":
                here = os.path.dirname(here)
            elif part not in ("", "."):
                here += "/" + part
                if os.path.islink(root + here):
                    target = os.readlink(root + here)
                    target = target[len(root) :] if target.startswith(root + "/") else target
                    self.links[here] = target
                    here = "" if target.startswith("/") else os.path.dirname(here)
                    parts = target.split("/") + parts
        if os.path.isdir(root + here):
            self.folders.add(here)
        elif os.access(root + here, os.R_OK):
            self.files[here] = read(here)

    def record_files(self, request):
        """Add all files of a request."""
        for pattern in request["files"]:
            for path in self.find(pattern):
                self.add(path, self.read)
        for pattern in request["only_there"]:
            for path in self.find(pattern):
                self.add(path, lambda _: "")
        for pattern, contents in request["only_if"].items():
            for path in self.find(pattern):
                if self.read(path).strip() in contents:
                    self.add(path, self.read)

    def record_calls(self, request):
        """Return the output of a request's calls, and of those for each PCI bridge."""
        classes = self.find("sys/bus/pci/devices/*/class")
        bridges = [path.split("/")[-2] for path in classes if self.read(path).startswith("0x0604")]
        of_bridges = [request["of_each_bridge"].replace("{bridge}", bridge) for bridge in bridges]
        return [answer for line in request["calls"] + of_bridges for answer in self.record_call(line, request)]

    def record_call(self, line, request):
        """Yield the output of one call, with the lines alone that the request names, if it names some."""
        answer = answer_of(shlex.split(self.named(line)))
        kept = tuple(request["only_lines"].get(line, ("",)))
        if answer:
            lines = [each for each in answer["stdout"].splitlines(True) if each.lstrip().startswith(kept)]
            yield dict(answer, stdout="".join(lines))


def answer_of(words):
    """Return a call's words, output and status, or None if its program is missing or takes too long."""
    if not shutil.which(words[0]):
        return None
    pipe = subprocess.PIPE
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, timeout=CALL_S)
    except subprocess.TimeoutExpired:
        return None
    output = {"stdout": done.stdout.decode(errors="replace"), "stderr": done.stderr.decode(errors="replace")}
    return dict(output, words=words, status=done.returncode)


def main():
    """Print the requested recording as JSON."""
    request = json.loads(sys.argv[1])
    root = request["root"]
    os.environ["PATH"] += "".join(":" + root + each for each in ("/usr/local/sbin", "/usr/sbin", "/sbin"))
    recorder = Recorder(root, request["nic"])
    recorder.record_files(request)
    recording = {
        "files": recorder.files,
        "folders": sorted(recorder.folders),
        "links": recorder.links,
        "calls": recorder.record_calls(request),
        "programs": [name for name in request["programs"] if shutil.which(name)],
    }
    print(json.dumps(recording))


if __name__ == "__main__":
    main()
