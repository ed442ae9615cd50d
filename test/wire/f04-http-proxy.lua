-- SPDX-License-Identifier: MIT
-- The example of the reverse proxy sends requests on, in turn.

local http = require "http"
local httpd = require "httpd"

test("http-proxy sends requests to its servers in turn", function()
    local first <close> = wire.listen("127.0.0.1", 0)
    local second <close> = wire.listen("127.0.0.1", 0)
    local proxy = httpd.spawn{wire.program("examples/http-proxy"), "0", tostring(first:port()), tostring(second:port())}
    local client <close> = proxy:connect()
    for _, listener in ipairs{first, second} do
        client:send(http.request "GET /a")
        local sock <close> = listener:accept()
        check(sock:recv_until("\r\n\r\n"):find "^GET /a HTTP/1.1\r\nHost: a\r\nVia: 1.1 sxe\r\n")
        sock:send "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
        equal(client:read_reply().body, "ok")
    end
    proxy.proc:signal "TERM"
    proxy.proc:wait(20)
end)
