# SPDX-License-Identifier: Apache-2.0
"""Training jobs of an experiment: their trainers, networks and launchers."""
