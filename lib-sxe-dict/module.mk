# SPDX-License-Identifier: MIT
sxe-dict.needs := sxe-pool
