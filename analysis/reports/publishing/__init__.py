# SPDX-License-Identifier: Apache-2.0
"""Published results: what the repository holds of runs, below `results/`.

Each folder `results/<experiment>/<testbed>/` holds one run's summary.json, a few of its report's figures, and
publication.json, which says where they are from.
"""
