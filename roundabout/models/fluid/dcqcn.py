# SPDX-License-Identifier: Apache-2.0
"""DCQCN's mean-field model: rates, targets and alpha as continuous functions under marking, for many flows at once.

The model is that of SIGCOMM'15, section 5, as CoNEXT'16 has it for each flow by itself (its section 3.1): rates,
targets, alpha and the queue are continuous, and a CNP or an increase counts by its expected frequency. Parameters mean
what they mean in transports/dcqcn, which defines four things that the papers omit:

- After a CNP there is none for `cnp_gap_us`, whatever is marked; only then the next marked packet makes one. Times
  between CNPs are the gap and an exponential wait.
- An increase depends on its stage, so on the time since the last CNP. The mean of that is a part of the state
  (`age_us`), which grows while nothing is marked. With steady marking, this is the papers' model, with their p < 1.
- Without `clamp_target`, the target follows only at a cut that comes after an increase: with the probability that a
  period of the timer or the byte counter ends between two CNPs.
- Increases are fast, additive or hyper by both counters' stages, and R_C takes half of each step at once.

A mean field has no noise, and it does not synchronize flows' cuts as near-step marking may.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

PACKET_BYTES = 1000.0
"""Bytes of a packet, the unit that is marked or not, as in CoNEXT'16. Larger packets mean fewer marks."""

NEVER = 1e30
"""Bytes of a byte counter that does not count, which unlike infinity may be multiplied by 0."""

CERTAIN = 1 - 1e-6
"""Highest marking probability in computations; it stands for 1 above Kmax, where the first packet after a gap makes a
CNP.
"""


@dataclass(frozen=True)
class Reaction:
    """Parameters of reaction points, as arrays of one shape.

    Names and meanings are those of transports/dcqcn/dcqcn_params.h. Rates are in bytes/us. With a `byte_counter_bytes`
    of 0 there is no byte counter, and its stage is the timer's.
    """

    T_us: Array
    F: Array
    byte_counter_bytes: Array
    R_AI: Array
    R_HAI: Array
    R_min: Array
    R_max: Array
    g: Array
    alpha_timer_us: Array
    cnp_gap_us: Array
    clamp_target: Array
    clamp_target_after_timer: Array
    hyper_by_stage: Array
    alpha_by_timer: Array
    alpha_initial: Array


@dataclass
class FlowState:
    """The state of reaction points, as arrays in the shape of their parameters, with rates in bytes/us."""

    R_C: Array
    R_T: Array
    alpha: Array
    age_us: Array
    """Mean time, us, since a CNP became possible again."""
    uncut: Array
    """Probability that no CNP has come yet. Until then alpha's timer does not run."""

    @classmethod
    def start(cls, reaction: Reaction) -> "FlowState":
        """Return the state of new flows: at the highest rate, and with alpha 1, so that their first cut is largest."""
        highest = np.array(reaction.R_max, float)
        ones = np.ones_like(highest)
        return cls(highest, highest.copy(), ones, np.zeros_like(highest), ones.copy())


def marking_probability(queue_bytes: Array, kmin_bytes: Array, kmax_bytes: Array, pmax: Array) -> Array:
    """Return the probability that a packet is marked at this queue length (CoNEXT'16, equation 1)."""
    rising = pmax * (queue_bytes - kmin_bytes) / np.maximum(kmax_bytes - kmin_bytes, 1.0)
    return np.where(queue_bytes > kmax_bytes, 1.0, np.maximum(rising, 0.0))


def advance(flow: FlowState, reaction: Reaction, rate: Array, p: Array, us: Array | float) -> Array:
    """Advance flows by `us`, in which they send at `rate`, bytes/us, and a share `p` of packets is marked.

    Return the CNPs per us of each flow.

    Decays are exact if rate and p stay constant, so a step may be longer than the gap between CNPs.
    """
    hazard = rate / PACKET_BYTES * -np.log1p(-np.minimum(p, CERTAIN))
    cuts = hazard / (1 + hazard * reaction.cnp_gap_us)
    aged = _advance_age(flow.age_us, hazard, us)
    events, additive, hyper, alpha_events = _increases(reaction, rate, aged)
    gain = (reaction.R_AI * additive + reaction.R_HAI * hyper) * us

    # A flow at R_max has no rate limiter yet, and its first CNP may set alpha.
    unlimited = (reaction.R_max <= flow.R_C) & (reaction.alpha_initial > 0)
    flow.alpha = np.where(unlimited, reaction.alpha_initial, flow.alpha)

    # A CNP makes the rate before it the target: the target follows a rate that falls, one cut above it.
    above = 1 / (1 - flow.alpha / 2)
    cut = np.maximum(flow.R_C * np.exp(-0.5 * us * cuts * flow.alpha), reaction.R_min)
    target = above * cut + (flow.R_T - above * flow.R_C) * np.exp(-cuts * us)
    clamps = reaction.clamp_target > 0
    if not clamps.all():
        follows = _increase_probability(reaction, rate, hazard)
        target = np.where(clamps, target, flow.R_T + follows * (target - flow.R_T))
    flow.R_T = np.minimum(target + gain, reaction.R_max)
    flow.R_C = np.minimum(cut + (target - cut) * -np.expm1(-0.5 * us * events) + 0.5 * gain, flow.R_T)
    flow.uncut = flow.uncut * np.exp(-cuts * us)
    up, down = _alpha_changes(reaction, hazard, cuts, alpha_events)
    down = down * (1 - flow.uncut)
    flow.alpha = _decay_towards(flow.alpha, up / np.maximum(up + down, 1e-30), (up + down) * us)
    flow.age_us = aged
    return cuts


def _decay_towards(value: Array, limit: Array, times: Array) -> Array:
    return limit + (value - limit) * np.exp(-times)


def _increase_probability(reaction: Reaction, rate: Array, hazard: Array) -> Array:
    """Return the probability that a rate is increased between two CNPs, whose wait after the gap is exponential."""
    counter = np.where(reaction.byte_counter_bytes > 0, reaction.byte_counter_bytes, NEVER) / np.maximum(rate, 1e-9)
    quick = np.where(reaction.clamp_target_after_timer > 0, np.minimum(reaction.T_us, counter), counter)
    return np.exp(-hazard * np.maximum(quick - reaction.cnp_gap_us, 0.0))


def _alpha_changes(reaction: Reaction, hazard: Array, cuts: Array, decays: Array) -> tuple[Array, Array]:
    """Return how fast alpha rises towards 1 and falls towards 0, per us.

    By a timer it does either once a period. The probability that no CNP comes in one is the stationary renewal
    process's: 1 minus CNPs a period where these are closer than the gap, else an exponential tail.
    """
    period, gap = reaction.alpha_timer_us, reaction.cnp_gap_us
    tail = np.exp(-hazard * np.maximum(period - gap, 0.0)) / (1 + hazard * gap)
    quiet = np.where(period > gap, tail, 1 - cuts * period)
    up = np.where(reaction.alpha_by_timer > 0, (1 - quiet) / period, cuts)
    down = np.where(reaction.alpha_by_timer > 0, quiet / period, decays)
    return reaction.g * up, reaction.g * down


def _advance_age(age_us: Array, hazard: Array, us: Array | float) -> Array:
    """Integrate d age / dt = 1 - hazard age exactly: the mean age under a renewal process of rate `hazard`."""
    times = hazard * us
    grown = us * np.divide(-np.expm1(-times), times, out=np.ones_like(times), where=times > 1e-9)
    return age_us * np.exp(-times) + grown


def _increases(reaction: Reaction, rate: Array, age_us: Array) -> tuple[Array, Array, Array, Array]:
    """Return, per us: all increases, the additive ones, the hyper ones (times their stage), and the decays of alpha."""
    gap, timer, stages = reaction.cnp_gap_us, reaction.T_us, reaction.F
    by_bytes = reaction.byte_counter_bytes > 0
    counter = np.where(by_bytes, reaction.byte_counter_bytes, np.inf) / np.maximum(rate, 1e-9)
    quick = np.minimum(timer, counter)
    slow = np.where(by_bytes, np.maximum(timer, counter), timer)
    fast_until, hyper_from = stages * quick, (stages + 1) * slow
    density = 1 / (gap + age_us)  # of ages within the gap; beyond it falls off exponentially

    # How often each counter counts, at ages of 0, `fast_until`, `hyper_from` and more.
    periods = np.array((timer, counter, reaction.alpha_timer_us))
    ages, ending = periods / age_us, -np.expm1(-periods / age_us)
    inside = np.floor(gap / periods)
    after = np.array((np.zeros_like(timer), fast_until, hyper_from))[:, None]
    first = np.maximum(np.ceil(after / periods - 1e-9), 1.0)
    beyond = np.exp(gap / age_us - np.maximum(first, inside + 1) * ages) / ending
    counts = density * (np.maximum(inside - first + 1, 0.0) + beyond)
    every, risen, steep = counts[:, 0] + counts[:, 1]

    still = density * np.exp(np.minimum((gap - hyper_from) / age_us, 0.0))
    ending_slow = -np.expm1(-slow / age_us)
    of_quick = np.where(by_bytes, age_us / quick, 0.0)
    hyper = still / ending_slow * (1 / ending_slow + of_quick)
    return every, risen - steep, np.where(reaction.hyper_by_stage > 0, hyper, steep), counts[0, 2]
