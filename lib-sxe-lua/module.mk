# SPDX-License-Identifier: MIT
sxe-lua.needs := sxe-http
sxe-lua.cflags := $(LUA_CFLAGS)
