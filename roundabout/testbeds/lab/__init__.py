# SPDX-License-Identifier: Apache-2.0
"""The testbed `lab`: hosts, switches and links made of Linux namespaces on this machine."""

from roundabout.testbeds.lab.errors import LabError
from roundabout.testbeds.lab.lifecycle.lab import Lab

__all__ = ["Lab", "LabError"]
