# SPDX-License-Identifier: Apache-2.0
"""What runs keep on this machine: who holds it, what is owed, and where that is found again."""
