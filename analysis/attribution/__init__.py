# SPDX-License-Identifier: Apache-2.0
"""Attribution of delays: which other jobs, settings and events make the iterations of a job longer."""
