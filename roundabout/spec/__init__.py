# SPDX-License-Identifier: Apache-2.0
"""What an experiment file may say."""
