# SPDX-License-Identifier: Apache-2.0
"""Disturbed attempts at trials: the estimated effect, and which attempt a trial keeps."""
