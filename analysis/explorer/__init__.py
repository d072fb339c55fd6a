# SPDX-License-Identifier: Apache-2.0
"""The explorer: static pages, with all their data in them, on the runs of a folder and on the trials of a run."""
