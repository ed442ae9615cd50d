# SPDX-License-Identifier: MIT
sxe-log.needs :=
