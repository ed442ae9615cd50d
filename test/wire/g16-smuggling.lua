-- SPDX-License-Identifier: MIT
-- Request smuggling, RFC 9112 section 11.2: a proxy and a server disagree about where a request ends. Each case hides a
-- second request in the first; the server may refuse the first, but must never answer the hidden one.

local http = require "http"
local request = http.request
local server <close> = http.echo()

local function printable(bytes)
    return (bytes:gsub("[%c\127-\255]", function(c) return ("\\x%02x"):format(c:byte()) end))
end

local smuggling = require "smuggling"
local EVIL, codings, lengths, others = smuggling.EVIL, smuggling.codings, smuggling.lengths, smuggling.others

for _, field in ipairs(codings) do
    local shown = printable(field)
    test("RFC 9112 11.2: one reader sees no body, another sees chunks: " .. shown, function()
        http.check_refused(server, {400, 501}, request("POST /", field) .. "0\r\n\r\n" .. EVIL)
    end)
    test("RFC 9112 11.2: one reader sees a length, another sees chunks: " .. shown, function()
        http.check_refused(server, {400, 501},
                           request("POST /", "Content-Length: 5", field) .. "0\r\n\r\n" .. EVIL)
    end)
end

for _, field in ipairs(lengths) do
    local shown = printable(field)
    test("RFC 9112 11.2: one reader sees no body, another sees a length: " .. shown, function()
        http.check_refused(server, {400, 413}, request("POST /", field) .. EVIL)
    end)
end

for _, case in ipairs(others) do
    local name, bytes = table.unpack(case)
    test("RFC 9112 11.2: " .. name, function()
        http.check_refused(server, {400, 413, 501, 505}, bytes)
    end)
end

test("RFC 9112 11.2: a request in a body is not answered", function()
    for _, bytes in ipairs{
        request("GET /", "Content-Length: " .. #EVIL) .. EVIL,
        request("HEAD /", "Content-Length: " .. #EVIL) .. EVIL,
        request("DELETE /", "Content-Length: " .. #EVIL) .. EVIL,
        request("OPTIONS *", "Content-Length: " .. #EVIL) .. EVIL,
        http.chunked(("%x\r\n%s\r\n0\r\n\r\n"):format(#EVIL, EVIL)),
        http.chunked(("0%X;a=\"%s\"\r\n%s\r\n0\r\nX: GET /evil\r\n\r\n"):format(#EVIL, "x", EVIL)),
    } do
        local method = bytes:match("^%S+")
        http.check_answered(server, bytes, {method = method, body = EVIL})
    end
end)
