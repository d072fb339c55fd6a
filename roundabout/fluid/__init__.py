# SPDX-License-Identifier: Apache-2.0
"""The fluid model: exact, event-driven, without packets; plan, testbeds and analysis may use it."""

from roundabout.fluid.jobs import FluidJob, fluid_jobs
from roundabout.fluid.limits import Limits, best_offsets, capacities, fluid_limits, left_by_cross_traffic
from roundabout.fluid.model import ITERATIONS, Course, Interval, Iteration, Rate, iteration_times
from roundabout.fluid.rates import Direction

__all__ = [
    "ITERATIONS",
    "Course",
    "Direction",
    "FluidJob",
    "Interval",
    "Iteration",
    "Limits",
    "Rate",
    "best_offsets",
    "capacities",
    "fluid_jobs",
    "fluid_limits",
    "iteration_times",
    "left_by_cross_traffic",
]
