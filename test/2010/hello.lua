-- SPDX-License-Identifier: MIT
-- A server in the manner of 2010: only the old names. It must run unchanged.
local reply = "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 14\r\n\r\nHello World\n\r\n"
local function event_connect(sxe) end
local function event_read(sxe, content) if content:match("\r\n\r\n", -4) then sxe_write(sxe, reply) end end
local function event_close(sxe) end
sxe_register(1000, function() sxe_listen(sxe_new_tcp("127.0.0.1", tonumber(arg[1] or 9090), event_connect, event_read, event_close)) end)
