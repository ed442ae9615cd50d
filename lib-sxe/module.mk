# SPDX-License-Identifier: MIT
sxe.needs := sxe-buffer sxe-pool
