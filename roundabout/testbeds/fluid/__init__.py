# SPDX-License-Identifier: Apache-2.0
"""The flow-level model as a testbed: any experiment in seconds, without root, computed and not measured."""
