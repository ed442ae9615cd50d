-- SPDX-License-Identifier: MIT
-- The example of the HTTP client prints the body that a server sends, and reports errors.

local function get(listener, reply)
    local proc <close> = wire.spawn{
        wire.program("examples/http-get"), "127.0.0.1", tostring(listener:port()), "/a?b"}
    local sock <close> = listener:accept(20)
    local request = sock:recv_until("\r\n\r\n")
    equal(request, "GET /a?b HTTP/1.1\r\nHost: 127.0.0.1:" .. listener:port() .. "\r\n\r\n")
    sock:send(reply)
    sock:shutdown()
    local output = proc:output()
    return output, proc:wait(10), proc:errors()
end

test("http-get prints a body", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local output, status = get(listener, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" ..
        "6\r\nhello \r\n6\r\nworld\n\r\n0\r\n\r\n")
    equal(output, "hello world\n")
    equal(status, 0)
end)

test("http-get fails with a status that is not 2xx", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local output, status = get(listener, "HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nnone\n")
    equal(output, "none\n")
    equal(status, 1)
end)

test("http-get prints why there is no response", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local output, status, errors = get(listener, "")
    equal(output, "")
    equal(errors, "http-get: Connection reset by peer\n")
    equal(status, 1)
end)
