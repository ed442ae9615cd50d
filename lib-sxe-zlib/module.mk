# SPDX-License-Identifier: MIT
sxe-zlib.needs := sxe-lua
sxe-zlib.cflags := $(LUA_CFLAGS)
