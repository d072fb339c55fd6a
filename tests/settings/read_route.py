# SPDX-License-Identifier: Apache-2.0
"""Read the congestion control of the route to the prefix that is the argument, as the settings program does."""

import sys
from pathlib import Path

from roundabout.settings.settings_host import Host
from roundabout.settings.settings_linux import read_route

read_route(Host(Path("/"), Path("/")), sys.argv[1], ["congctl"])
