# SPDX-License-Identifier: MIT
sxe-pool.needs := sxe-log
