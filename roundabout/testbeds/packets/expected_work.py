# SPDX-License-Identifier: Apache-2.0
"""The work that the engine is expected to have with a trial."""

from roundabout.models.fluid import Engine, ResidualCapacity, capacities, fluid_jobs
from roundabout.models.packets import count_packet_hops
from roundabout.plan import PlannedTrial, with_simulated_jobs
from roundabout.spec import TrialSpec


def expected_packet_hops(trial: PlannedTrial) -> float:
    """Return how many data packets all links are expected to carry in a trial.

    The jobs of a cluster's slice come from the simulation of its trace, and are as fast as in the flow-level model.
    """
    if not trial.spec.cluster:
        return count_packet_hops(trial.spec)
    return count_packet_hops(_with_computed_iterations(with_simulated_jobs(trial.spec, trial.seed)[0]))


def _with_computed_iterations(spec: TrialSpec) -> TrialSpec:
    """Return a trial whose jobs have as many iterations as they begin in the flow-level model until they depart."""
    engine = Engine(ResidualCapacity.constant(capacities(spec.topology)))
    for name, job in fluid_jobs(spec).items():
        engine.add(name, job)
    engine.run_to_end()
    jobs = {name: job.model_copy(update={"iterations": engine.completed(name) + 1}) for name, job in spec.jobs.items()}
    return spec.model_copy(update={"jobs": jobs})
