# SPDX-License-Identifier: MIT
sxe-postgres.needs := sxe-lua
sxe-postgres.cflags := $(LUA_CFLAGS) $(POSTGRES_CFLAGS)
