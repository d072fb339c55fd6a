# SPDX-License-Identifier: Apache-2.0
"""Judges a congestion control beside cubic, dctcp and dcqcn, as `roundabout judge FILE.bpf.c` does."""
