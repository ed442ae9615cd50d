# SPDX-License-Identifier: MIT
sxe-lua.needs := sxe-http
