#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The program `roundabout`, set up when it is first called. A link to this file serves as well, from a folder of PATH.
set -eu
here=$(dirname "$(readlink -f "$0")")
[ -x "$here/.venv/bin/roundabout" ] || make --silent --directory "$here" setup >&2
exec "$here/.venv/bin/roundabout" "$@"
