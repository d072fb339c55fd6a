# SPDX-License-Identifier: Apache-2.0
"""Judges anyone's congestion control beside cubic, dctcp and dcqcn: what `roundabout cc FILE.bpf.c` measures."""
