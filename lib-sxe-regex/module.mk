# SPDX-License-Identifier: MIT
sxe-regex.needs := sxe-lua
sxe-regex.cflags := $(LUA_CFLAGS) $(REGEX_CFLAGS)
