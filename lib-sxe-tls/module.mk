# SPDX-License-Identifier: MIT
sxe-tls.needs := sxe
