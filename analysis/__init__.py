# SPDX-License-Identifier: Apache-2.0
"""Analysis of stored runs: models, intervals and plots."""

import logging

# Matplotlib warns of a home without a folder for its cache when it is imported. It works without one.
logging.getLogger("matplotlib").setLevel(logging.ERROR)
