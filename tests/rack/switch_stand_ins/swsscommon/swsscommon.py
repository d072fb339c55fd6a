# SPDX-License-Identifier: Apache-2.0
"""SONiC's library of this name, as far as its databases are read: they are files of JSON in the working folder."""

import json
from pathlib import Path


class SonicV2Connector:
    """A connection to databases. One that is not connected has no tables."""

    COUNTERS_DB, CONFIG_DB = "COUNTERS_DB", "CONFIG_DB"

    def __init__(self, use_unix_socket_path):
        self._connected = set() if use_unix_socket_path else {None}

    def connect(self, name, retry_on):
        if not retry_on:
            self._connected.add(name)

    def get_all(self, name, key):
        return json.loads(Path(f"{name}.json").read_text()).get(key) if name in self._connected else None
