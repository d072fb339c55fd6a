# SPDX-License-Identifier: Apache-2.0
"""How cross traffic slows training down: models, congestion points and what they cost.

After Salamy, "Network Requirements for Distributed Machine Learning Training in the Cloud" (2022): equations,
tables and figures that this package names are those of that thesis.
"""
