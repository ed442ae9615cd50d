# SPDX-License-Identifier: MIT
sxe-workers.needs := sxe
