# SPDX-License-Identifier: Apache-2.0
"""What a run measured, read from its tables; nothing here fits, judges or draws."""
