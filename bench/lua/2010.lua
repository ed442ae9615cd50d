-- SPDX-License-Identifier: MIT
-- test/2010/hello.lua with more sockets: a server in the manner of 2010, only the old names.
local reply = "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n"
              .. "Content-Length: 14\r\n\r\nHello World\n\r\n"

local function connected() end

local function read(sxe, content)
    if content:match("\r\n\r\n", -4) then
        sxe_write(sxe, reply)
    end
end

local function closed() end

sxe_register(11000, function()
    sxe_listen(sxe_new_tcp("127.0.0.1", tonumber(arg[1] or 9090), connected, read, closed))
end)
