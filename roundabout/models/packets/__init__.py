# SPDX-License-Identifier: Apache-2.0
"""The packet-level model: every packet, queue, timer and pause of RoCE networks at full rate, from a seed.

engine.py is the engine in C++ (native/). network.py and jobs.py make its plans of a trial. hardware_defaults.py has the
properties that no topology states. docs/explanation/packet-level-model.md lists what is modelled and what is not.
"""

from roundabout.models.native_engine import EngineError
from roundabout.models.packets.cross_traffic import NO_LOADS, Load, Loads, PlayedTraffic, Streams
from roundabout.models.packets.engine import Engine, Message, Samples
from roundabout.models.packets.hardware_defaults import Fabric
from roundabout.models.packets.network import Ports, UnsupportedError
from roundabout.models.packets.structures import PS_PER_MS
from roundabout.models.packets.trial import SAMPLE_MS, PlayedTrial, count_packet_hops, open_trial, play_trial

__all__ = [
    "NO_LOADS",
    "PS_PER_MS",
    "SAMPLE_MS",
    "Engine",
    "EngineError",
    "Fabric",
    "Load",
    "Loads",
    "Message",
    "PlayedTraffic",
    "PlayedTrial",
    "Ports",
    "Samples",
    "Streams",
    "UnsupportedError",
    "count_packet_hops",
    "open_trial",
    "play_trial",
]
