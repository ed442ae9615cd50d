-- SPDX-License-Identifier: MIT
-- Request smuggling, RFC 9112 section 11.2, through the reverse proxy: the corpus of g16-smuggling.lua. The client gets a
-- refusal, and the upstream never gets the hidden request, nor a request that is whole. The proxies are a server's own, and one
-- that a script's handler calls.

local http = require "http"
local httpd = require "httpd"
local script = require "script"
local smuggling = require "smuggling"
local request, EVIL = http.request, smuggling.EVIL

local upstream <close> = wire.listen("127.0.0.1", 0)
local own <close> = httpd.start("--proxy", "/=http://127.0.0.1:" .. upstream:port())
local called <close> = script.start(([[local proxy = require "sxe.http".proxy{ servers = "127.0.0.1:%d" }
    return function(req, res) return proxy(req, res) end]]):format(upstream:port()))
local servers = {own, called}

local function printable(bytes)
    return (bytes:gsub("[%c\127-\255]", function(c) return ("\\x%02x"):format(c:byte()) end))
end

-- The bytes that the upstream got until the proxy closed or reset the connection; "": there was no connection.
local function recorded()
    if not upstream:ready(0) then
        return ""
    end
    local sock <close> = upstream:accept(20)
    local bytes = {}
    while not sock:eof() do
        bytes[#bytes + 1] = sock:recv(1)
    end
    return table.concat(bytes)
end

local function check_refused(statuses, bytes)
    for _, server in ipairs(servers) do
        http.check_refused(server, statuses, bytes)
        local got = recorded()
        check(not got:find("evil", 1, true), got)
        check(got == "" or (got:find("\r\nTransfer-Encoding: chunked\r\n\r\n", 1, true) and not got:find "0\r\n\r\n$"), got)
    end
end

for _, field in ipairs(smuggling.codings) do
    local shown = printable(field)
    test("RFC 9112 11.2: one reader sees no body, another sees chunks: " .. shown, function()
        check_refused({400, 501}, request("POST /", field) .. "0\r\n\r\n" .. EVIL)
        check_refused({400, 501}, request("POST /", "Content-Length: 5", field) .. "0\r\n\r\n" .. EVIL)
    end)
end

for _, field in ipairs(smuggling.lengths) do
    if field ~= "Content-Length: 4294967329" then -- a length of 33 bits is one, and the body passes in parts
        test("RFC 9112 11.2: one reader sees no body, another sees a length: " .. printable(field), function()
            check_refused({400, 413}, request("POST /", field) .. EVIL)
        end)
    end
end

for _, case in ipairs(smuggling.others) do
    local name, bytes = table.unpack(case)
    test("RFC 9112 11.2: " .. name, function()
        check_refused({400, 413, 501, 505}, bytes)
    end)
end

test("RFC 9112 11.2: a request in a body stays in the body", function()
    local function ask(server, method)
        local client <close> = server:connect()
        client:send(request(method .. " /", "Content-Length: " .. #EVIL, "Connection: close") .. EVIL)
        local sock <close> = upstream:accept(20)
        local got = sock:recv_until("\r\n\r\n")
        check(got:find("^" .. method .. " / HTTP/1.1\r\nHost: a\r\n"), got)
        check(got:find("\r\nContent-Length: " .. #EVIL .. "\r\n", 1, true), got)
        equal(sock:recv(#EVIL), EVIL)
        sock:send("HTTP/1.1 204 No\r\nConnection: close\r\n\r\n")
        equal(client:read_reply(method).status, 204)
        check(sock:eof(), "nothing follows")
    end
    for _, server in ipairs(servers) do
        for _, method in ipairs{"GET", "HEAD", "DELETE", "OPTIONS"} do
            ask(server, method)
        end
    end
end)
