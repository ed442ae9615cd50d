-- SPDX-License-Identifier: MIT
-- The greeting's handler reads a request's body of up to 1 MiB and drops it.

local httpd = require "httpd"
local server <close> = httpd.start()

local MIB = 1024 * 1024

local function head(length)
    return "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " .. length .. "\r\n\r\n"
end

for _, length in ipairs{0, 1, 13, 4096, 65535, 65536, 65537, MIB - 1, MIB} do
    test(("a body of %d bytes is read and dropped"):format(length), function()
        local sock <close> = server:connect()
        local body = httpd.GET:rep(length // #httpd.GET + 1):sub(1, length)
        sock:pump(head(length) .. body .. httpd.LAST)
        equal(httpd.undated(sock:recv_all()), httpd.hello() .. httpd.hello("close"))
    end)
end

test("a body that comes slowly, after a pause after its head", function()
    local sock <close> = server:connect()
    sock:send(head(20))
    wire.sleep(0.01)
    sock:send_slowly(("x"):rep(20), 1)
    equal(httpd.undated(sock:read_reply().raw), httpd.hello())
    sock:send(httpd.GET)
    equal(httpd.undated(sock:read_reply().raw), httpd.hello())
end)

for _, length in ipairs{MIB + 1, "4294967297", "1234567890123456789"} do
    test(("a body of %s bytes is refused when its head has come"):format(length), function()
        local sock <close> = server:connect()
        sock:send(head(length))
        local reply = sock:read_reply()
        equal(reply.status, 413)
        equal(reply.headers.connection, "close")
        check(sock:eof(), "not closed")
    end)
end

test("a client that sends too large a body at once still gets the refusal", function()
    local sock <close> = server:connect()
    sock:pump(head(2 * MIB) .. ("x"):rep(300000))
    equal(sock:read_reply().status, 413)
end)
