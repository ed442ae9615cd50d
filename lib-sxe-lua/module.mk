# SPDX-License-Identifier: MIT
sxe-lua.needs := sxe-http sxe-dict sxe-sketch
sxe-lua.cflags := $(LUA_CFLAGS)
