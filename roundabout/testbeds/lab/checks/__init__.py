# SPDX-License-Identifier: Apache-2.0
"""Requirements of the lab, and checks of its hosts and fidelity."""
