# SPDX-License-Identifier: Apache-2.0
"""The testbed `rack`: the servers and switches of an inventory."""
