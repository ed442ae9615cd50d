# SPDX-License-Identifier: MIT
sxe-sketch.needs := sxe-pool
