-- SPDX-License-Identifier: MIT
--
-- The HTTP client in C by name and through forward proxies, by docs/http.md: examples/http-fetch.c, whose proxy or server
-- the test plays.

-- What http-fetch does with these arguments and variables. `play` gets the connection, and the head of the request.
local function fetch(listener, host, env, play)
    local proc <close> = wire.spawn{wire.program("examples/http-fetch"), host, "/a?b", env = env}
    local heads = {}
    for i, answer in ipairs(play) do
        local sock <close> = listener:accept(20)
        heads[i] = sock:recv_until("\r\n\r\n")
        sock:send(answer)
        sock:shutdown()
    end
    return proc:output(), proc:wait(20), proc:errors(), heads[1]
end

local OK <const> = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n"

-- promise: docs/http.md: With `name` instead of `ip`, each new connection looks the name up, and its addresses race
-- (RFC 8305)
test("a server is called by its name", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local host = "localhost:" .. listener:port()
    local output, status, errors, head = fetch(listener, host, {no_proxy = "*"}, {OK})
    equal(output, "ok\n", errors)
    equal(status, 0)
    equal(head, "GET /a?b HTTP/1.1\r\nHost: " .. host .. "\r\n\r\n")
end)

-- promise: docs/http.md: Without TLS the proxy gets each request with its whole URL. The `Host` of the call names the
-- server, so one client may call all servers through one proxy.
test("a proxy gets the whole URL", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local env = {http_proxy = "http://127.0.0.1:" .. listener:port() .. "/"}
    local output, status, errors, head = fetch(listener, "a.example:81", env, {OK})
    equal(output, "ok\n", errors)
    equal(status, 0)
    equal(head, "GET http://a.example:81/a?b HTTP/1.1\r\nHost: a.example:81\r\n\r\n")
end)

-- promise: docs/http.md: The proxy looks up the name of the server. The client looks up only the name of the proxy,
-- and its addresses race.
test("a proxy gets the name as it is", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local env = {http_proxy = "localhost:" .. listener:port()}
    local output, status, errors, head = fetch(listener, "no.such.name.invalid", env, {OK})
    equal(output, "ok\n", errors)
    equal(status, 0)
    equal(head, "GET http://no.such.name.invalid/a?b HTTP/1.1\r\nHost: no.such.name.invalid\r\n\r\n")
end)

-- promise: docs/http.md: The client sends user and password to the proxy only, in `Proxy-Authorization`.
test("credentials go to the proxy, and not to a host that is called directly", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local env = {http_proxy = "http://us%40er:pa:ss@127.0.0.1:" .. listener:port()}
    local _, _, _, head = fetch(listener, "a.example", env, {OK})
    check(head:find("\r\nProxy-Authorization: Basic dXNAZXI6cGE6c3M=\r\n", 1, true), head)
    env.no_proxy = "localhost"
    _, _, _, head = fetch(listener, "localhost:" .. listener:port(), env, {OK})
    check(not head:find("Authorization", 1, true) and head:find("^GET /a%?b "), head)
end)

-- promise: docs/http.md: After a failure of the proxy, `exchange->failure` names it and says why
test("a proxy that fails is named", function()
    for answer, why in pairs{
        ["HTTP/1.1 407 Who?\r\nContent-Length: 4\r\n\r\npage"] = " wants a user and a password (407)",
        ["SSH-2.0-rubbish\r\n\r\n"] = ": its reply is not HTTP: ",
        ["HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"] = " closed the connection before its reply was whole",
        [""] = " closed the connection before its reply was whole",
    } do
        local listener <close> = wire.listen("127.0.0.1", 0)
        local name = "127.0.0.1:" .. listener:port()
        local output, status, errors = fetch(listener, "a.example", {http_proxy = name}, {answer})
        equal(output, "")
        equal(status, 1)
        check(errors:find("http-fetch: the proxy " .. name .. why, 1, true), errors)
    end
    local name = "127.0.0.1:" .. wire.free_port()
    local proc <close> = wire.spawn{wire.program("examples/http-fetch"), "a.example", env = {http_proxy = name}}
    equal(proc:wait(20), 1)
    equal(proc:errors(), "http-fetch: the proxy " .. name .. ": Connection refused\n")
end)
