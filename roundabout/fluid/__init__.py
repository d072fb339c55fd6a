# SPDX-License-Identifier: Apache-2.0
"""The fluid model: exact, event-driven, without packets; plan, testbeds and analysis may use it."""

from roundabout.fluid.limits import Limits, fluid_limits

__all__ = ["Limits", "fluid_limits"]
