# SPDX-License-Identifier: Apache-2.0
"""Documentation that is made from code: `python -m docgen` writes reference pages, and the architecture's diagram."""
