# SPDX-License-Identifier: Apache-2.0
"""Answers each line of stdin with the queues of SONiC's ports, as its databases have them.

An answer is a line of JSON, and the line `done`. Arguments: the ports. Nothing is written to a database.
"""

import json
import sys

from swsscommon.swsscommon import SonicV2Connector

GROUPS = ("QUEUE", "QUEUE_WATERMARK", "WRED_ECN_QUEUE", "PORT")
OF_QUEUES, OF_PRIORITY = "SAI_QUEUE_STAT_", "SAI_PORT_STAT_PFC_%s_"


def main():
    """Answer until stdin ends."""
    database = SonicV2Connector(use_unix_socket_path=False)
    for name in (database.COUNTERS_DB, database.CONFIG_DB):
        database.connect(name, False)
    for _ in sys.stdin:
        print(json.dumps(read(database, sys.argv[1:])))
        print("done", flush=True)


def read(database, ports):
    """Return the groups of counters with their periods, and the type and counters of each queue by its name.

    A queue has the counters of the PFC priority with its number, too.
    """

    def table(key, name=database.COUNTERS_DB):
        return dict(database.get_all(name, key) or {})

    def counters(oid, prefix):
        return {key: value for key, value in table("COUNTERS:" + oid).items() if key.startswith(prefix)}

    types, oids = table("COUNTERS_QUEUE_TYPE_MAP"), table("COUNTERS_PORT_NAME_MAP")
    queues = {}
    for name, oid in table("COUNTERS_QUEUE_NAME_MAP").items():
        port, _, queue = name.rpartition(":")
        if port in ports:
            pauses = counters(oids[port], OF_PRIORITY % queue) if port in oids else {}
            queues[name] = {"type": types.get(oid), "counters": dict(counters(oid, OF_QUEUES), **pauses)}
    groups = {group: table("FLEX_COUNTER_TABLE|" + group, database.CONFIG_DB) for group in GROUPS}
    return {"groups": groups, "queues": queues}


if __name__ == "__main__":
    main()
