# SPDX-License-Identifier: Apache-2.0
"""Links of a lab that fail or lose packets by a trial's events."""
