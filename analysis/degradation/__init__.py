# SPDX-License-Identifier: Apache-2.0
"""How cross traffic slows training down: the models of "Network Requirements for Distributed Machine Learning Training".

Equations, tables and figures named in this package are those of that thesis (Salamy, 2022).
"""
