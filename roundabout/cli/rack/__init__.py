# SPDX-License-Identifier: Apache-2.0
"""Commands on the machines of a rack."""
