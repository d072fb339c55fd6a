# SPDX-License-Identifier: Apache-2.0
"""Documentation that is made from code: reference pages, the diagram of the architecture, and the site.

`python -m docgen` writes the pages and the diagram into docs/, `python -m docgen.site` builds the site.
"""
