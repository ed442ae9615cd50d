# SPDX-License-Identifier: MIT
sxe-buffer.needs := sxe-log
