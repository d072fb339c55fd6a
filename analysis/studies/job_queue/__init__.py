# SPDX-License-Identifier: Apache-2.0
"""The study of queues of jobs: their slowdowns by load and variant."""
