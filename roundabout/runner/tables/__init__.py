# SPDX-License-Identifier: Apache-2.0
"""From what host programs print to the tables of a trial."""
