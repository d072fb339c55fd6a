# SPDX-License-Identifier: Apache-2.0
"""Flow-level models, which have no packets, for plans, testbeds and analysis.

Links are shared max-min fairly at every instant, exactly and event-driven, with two exceptions. Beside flows of cross
traffic the residual capacity changes in steps, and weights that grow, as MLTCP's (mltcp.py), are integrated
numerically (engine.py). DCQCN has a mean-field model in time steps (dcqcn.py, mean_field_dcqcn.py).
"""

from roundabout.models.fluid.cross_traffic import (
    BYTES_PER_MS_OF_GBPS,
    Schedule,
    capacities,
    residual_of_loads,
    residual_of_schedules,
)
from roundabout.models.fluid.engine import ITERATIONS, Engine, iteration_times
from roundabout.models.fluid.jobs import FluidJob, fluid_jobs
from roundabout.models.fluid.limits import Limits, best_offsets, fluid_limits, steady_means_ms
from roundabout.models.fluid.link_events import play_link_events
from roundabout.models.fluid.residual_capacity import Floats, ResidualCapacity
from roundabout.models.fluid.timetable_stretch import stretch_timetables
from roundabout.models.native_engine import EngineError
from roundabout.spec.topology import Direction

__all__ = [
    "BYTES_PER_MS_OF_GBPS",
    "ITERATIONS",
    "Direction",
    "Engine",
    "EngineError",
    "Floats",
    "FluidJob",
    "Limits",
    "ResidualCapacity",
    "Schedule",
    "best_offsets",
    "capacities",
    "fluid_jobs",
    "fluid_limits",
    "iteration_times",
    "play_link_events",
    "residual_of_loads",
    "residual_of_schedules",
    "steady_means_ms",
    "stretch_timetables",
]
