# SPDX-License-Identifier: Apache-2.0
"""How cross traffic slows training down: models, congestion points and what they cost.

After Salamy, "Network Requirements for Distributed Machine Learning Training in the Cloud" (2022). "The thesis" in this
package is that one, and so are the equations, tables and figures that it names.
"""
