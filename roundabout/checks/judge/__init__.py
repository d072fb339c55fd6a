# SPDX-License-Identifier: Apache-2.0
"""Judgement of a congestion control: `roundabout judge FILE.bpf.c` compares it with cubic, dctcp and dcqcn."""
