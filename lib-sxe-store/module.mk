# SPDX-License-Identifier: MIT
sxe-store.needs := sxe-lua
sxe-store.cflags := $(LUA_CFLAGS)
