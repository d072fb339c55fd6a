# SPDX-License-Identifier: Apache-2.0
"""Checks of this machine's suitability for labs, settings of lab hosts, and the lab's fidelity."""
