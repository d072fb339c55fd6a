# SPDX-License-Identifier: Apache-2.0
"""Execution of a trial on hosts over SSH, from settings to the check of its validity."""
