# SPDX-License-Identifier: MIT
sxe-http.needs := sxe
