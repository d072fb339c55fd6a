# SPDX-License-Identifier: Apache-2.0
"""Write every generated file of docs/: `python -m docgen`."""

from docgen.generation import write_all

for path in write_all():
    print(path)
