# SPDX-License-Identifier: Apache-2.0
"""Forwarding by routes, in labs whose topology has several paths."""
