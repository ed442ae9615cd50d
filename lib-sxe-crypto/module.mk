# SPDX-License-Identifier: MIT
sxe-crypto.needs := sxe-lua
sxe-crypto.cflags := $(LUA_CFLAGS)
