# SPDX-License-Identifier: Apache-2.0
"""Documentation that is made from code: `python -m docgen` writes the reference pages into docs/."""
