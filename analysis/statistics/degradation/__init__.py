# SPDX-License-Identifier: Apache-2.0
"""Degradation of training by cross traffic: models, congestion points and their cost.

After Salamy, "Network Requirements for Distributed Machine Learning Training in the Cloud" (2022), whose equations,
tables and figures this package names.
"""
