# SPDX-License-Identifier: Apache-2.0
"""Answers each line of stdin with the queues of SONiC's ports, as its databases have them.

An answer is a line of JSON, and the line `done`. Arguments: the ports. Nothing is written to a database.
"""

import json
import sys

from swsscommon.swsscommon import SonicV2Connector

GROUPS = ("QUEUE", "QUEUE_WATERMARK", "WRED_ECN_QUEUE")
OF_QUEUES = "SAI_QUEUE_STAT_"


def main():
    """Answer until stdin ends."""
    database = SonicV2Connector(use_unix_socket_path=False)
    for name in (database.COUNTERS_DB, database.CONFIG_DB):
        database.connect(name, False)
    for _ in sys.stdin:
        print(json.dumps(read(database, sys.argv[1:])))
        print("done", flush=True)


def read(database, ports):
    """Return the groups of counters with their periods, and the type and counters of each queue by its name."""

    def table(key, name=database.COUNTERS_DB):
        return dict(database.get_all(name, key) or {})

    types = table("COUNTERS_QUEUE_TYPE_MAP")
    queues = {}
    for name, oid in table("COUNTERS_QUEUE_NAME_MAP").items():
        if name.rpartition(":")[0] in ports:
            counters = {key: value for key, value in table("COUNTERS:" + oid).items() if key.startswith(OF_QUEUES)}
            queues[name] = {"type": types.get(oid), "counters": counters}
    groups = {group: table("FLEX_COUNTER_TABLE|" + group, database.CONFIG_DB) for group in GROUPS}
    return {"groups": groups, "queues": queues}


if __name__ == "__main__":
    main()
