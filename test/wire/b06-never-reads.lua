-- SPDX-License-Identifier: MIT
-- A client sends requests without end and reads no reply: the server stops reading from it, and buffers neither its
-- requests nor its replies.

local httpd = require "httpd"

-- Enough requests to fill the kernel's socket buffers, which hold the replies to some 25,000.
local CLIENTS, REQUESTS = 4, 60000

-- Send until the server reads no more, although it has nothing else to do.
local function send_until_full(server, sock, bytes)
    local sent, more = 0, nil
    repeat
        more = sock:send_some(bytes:sub(sent + 1), 0.1)
        sent = sent + more
        server:rest()
    until more == 0
    return sent
end

test("the server stops reading from clients that do not read, answers others, and loses no byte", function()
    local server <close> = httpd.start()
    local bytes = httpd.GET:rep(REQUESTS - 1) .. httpd.LAST
    local greedy, sent = {}, {}

    server:check_answers()
    local memory = wire.rss(server.pid)
    for i = 1, CLIENTS do
        greedy[i] = server:connect(4096)
        sent[i] = send_until_full(server, greedy[i], bytes)
    end

    for _ = 1, 20 do
        server:check_answers()
    end
    server:check_idle()

    local grown = wire.rss(server.pid) - memory
    check(grown < 8 * 1024 * 1024 * httpd.slack, ("grown by %d bytes"):format(grown))

    local expected = httpd.hello():rep(REQUESTS - 1) .. httpd.hello("close")
    for i, sock in ipairs(greedy) do
        sock:pump(bytes:sub(sent[i] + 1))
        equal(httpd.undated(sock:recv_all()), expected, "client " .. i)
        sock:close()
    end
end)

test("a server with clients that never read can be stopped", function()
    local server <close> = httpd.start()
    local sock <close> = server:connect(4096)
    send_until_full(server, sock, httpd.GET:rep(REQUESTS))
    server:stop()
end)
