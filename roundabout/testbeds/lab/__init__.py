# SPDX-License-Identifier: Apache-2.0
"""The lab: hosts, switches and links made of Linux namespaces on this machine."""
