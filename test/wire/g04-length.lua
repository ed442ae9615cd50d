-- SPDX-License-Identifier: MIT
-- Bodies with a Content-Length: RFC 9112 sections 6.2 and 6.3, RFC 9110 section 8.6.

local http = require "http"
local request, sized = http.request, http.sized
local server <close> = http.echo()

local EVIL = request("GET /evil")
local MIB = 1024 * 1024

http.test_answered(server, {
    {"RFC 9112 6.3: a POST without a length has no body", request("POST /"), {body = ""}},
    {"RFC 9112 6.3: a PUT without a length has no body", request("PUT /"), {body = ""}},
    {"RFC 9112 6.3: a length of 0", sized("0", ""), {body = ""}},
    {"RFC 9112 6.3: a length of 1", sized("1", "x"), {body = "x"}},
    {"RFC 9112 6.3: a body that looks like a request", sized(tostring(#EVIL), EVIL), {body = EVIL}},
    {"RFC 9112 6.3: a body of empty lines", sized("8", "\r\n\r\n\r\n\r\n"),
     {body = "\r\n\r\n\r\n\r\n"}},
    {"RFC 9112 6.3: a body that looks like a chunk", sized("5", "0\r\n\r\n"), {body = "0\r\n\r\n"}},
    {"RFC 9112 6.3: a body of all bytes",
     sized("256", (("x"):rep(256):gsub("()x", function(at) return string.char(at - 1) end))),
     {body = (("x"):rep(256):gsub("()x", function(at) return string.char(at - 1) end))}},
    {"RFC 9110 8.6: zeros in front are digits", sized("005", "hello"), {body = "hello"}},
    {"RFC 9110 8.6: a length written octally is decimal", sized("010", "0123456789"),
     {body = "0123456789"}},
    {"RFC 9110 8.6: many zeros in front", sized(("0"):rep(30) .. "5", "hello"), {body = "hello"}},
    {"RFC 9112 6.3: two equal lengths are one",
     request("POST /", "Content-Length: 5", "Content-Length: 5") .. "hello", {body = "hello"}},
    {"RFC 9110 9.3.1: a GET may have a body", request("GET /", "Content-Length: 5") .. "hello",
     {body = "hello"}},
    {"RFC 9110 9.3.5: a DELETE may have a body",
     request("DELETE /", "Content-Length: 5") .. "hello", {method = "DELETE", body = "hello"}},
    {"RFC 9110 9.3.2: of a HEAD the body is read, and none is sent",
     request("HEAD /", "Content-Length: 5") .. "hello", {method = "HEAD"}},
    {"RFC 9110 9.3.7: an OPTIONS may have a body",
     request("OPTIONS /", "Content-Length: 5") .. "hello", {method = "OPTIONS", body = "hello"}},
    {"RFC 9112 6.3: a length in HTTP/1.0",
     request("POST / HTTP/1.0", "Content-Length: 5", "Connection: keep-alive") .. "hello",
     {body = "hello"}},
    {"RFC 9110 15.5.14: a body of 1 MiB is taken", sized(tostring(MIB), ("x"):rep(MIB)),
     {body = ("x"):rep(MIB)}},
})

local lengths = {
    {"that is negative", "-1"},
    {"with a plus sign", "+5"},
    {"in hexadecimal", "0x5"},
    {"of hexadecimal digits", "a"},
    {"that is empty", ""},
    {"of blanks", " \t "},
    {"of words", "five"},
    {"with a fraction", "5.0"},
    {"with a comma after it", "5,"},
    {"with a comma before it", ",5"},
    {"with an exponent", "5e0"},
    {"with an underscore", "1_0"},
    {"with a letter after it", "5a"},
    {"with a blank in it", "1 0"},
    {"with a semicolon after it", "5;a=b"},
    {"in quotation marks", "\"5\""},
    {"in single quotation marks", "'5'"},
    {"of digits of another script", "\xd9\xa5"},
    {"of full-width digits", "\xef\xbc\x95"},
    {"with a no-break space before it", "\xa05"},
    {"with a no-break space after it", "5\xa0"},
    {"that is negative and overflows", "-123456789123456789123456789"},
    {"of 2 to the 64th", "18446744073709551616"},
    {"of 2 to the 64th and a body's length", "18446744073709551621"},
    {"of 2 to the 65th", "36893488147419103232"},
    {"of 100 digits", ("9"):rep(100)},
    {"that is a list of two that differ", "5, 6"},
    {"that is a list of two that are equal", "5, 5"},
}
for _, case in ipairs(lengths) do
    local name, value = table.unpack(case)
    test(("RFC 9110 8.6: a Content-Length %s is refused"):format(name), function()
        http.check_refused(server, 400, sized(value, "hello"))
    end)
end

local function lengths_of(...)
    return request("POST /", ...) .. "0\r\n\r\n"
end

local refused = {
    {"RFC 9112 6.3: two lengths, the first shorter,", 400,
     lengths_of("Content-Length: 0", "Content-Length: 5")},
    {"RFC 9112 6.3: two lengths, the first longer,", 400,
     lengths_of("Content-Length: 5", "Content-Length: 0")},
    {"RFC 9112 6.3: two lengths, the first empty,", 400,
     lengths_of("Content-Length:", "Content-Length: 5")},
    {"RFC 9112 6.3: two lengths, the second empty,", 400,
     lengths_of("Content-Length: 5", "Content-Length:")},
    {"RFC 9112 6.3: three lengths, the last different,", 400,
     lengths_of("Content-Length: 5", "Content-Length: 5", "Content-Length: 6")},
    {"RFC 9112 6.3: two lengths with a field between", 400,
     lengths_of("Content-Length: 5", "X: y", "content-length: 6")},
    {"RFC 9112 6.1: Content-Length before Transfer-Encoding", 400,
     lengths_of("Content-Length: 5", "Transfer-Encoding: chunked")},
    {"RFC 9112 6.1: Transfer-Encoding before Content-Length", 400,
     lengths_of("Transfer-Encoding: chunked", "Content-Length: 5")},
    {"RFC 9112 6.1: Content-Length 0 and Transfer-Encoding", 400,
     lengths_of("Content-Length: 0", "Transfer-Encoding: chunked")},
    {"RFC 9112 6.1: Content-Length and an unknown coding", 400,
     lengths_of("Content-Length: 5", "Transfer-Encoding: x")},
    {"RFC 9112 6.1: Content-Length and an empty Transfer-Encoding", 400,
     lengths_of("Content-Length: 5", "Transfer-Encoding:")},
    {"RFC 9112 6.1: Content-Length and Transfer-Encoding identity", 400,
     lengths_of("Content-Length: 5", "Transfer-Encoding: identity")},
    {"RFC 9112 6.1: Content-Length and Transfer-Encoding with other fields between", 400,
     lengths_of("content-length: 5", "X: y", "TRANSFER-ENCODING: CHUNKED")},
    {"RFC 9110 15.5.14: a body of 1 MiB and a byte", 413, sized(tostring(MIB + 1), "")},
    {"RFC 9110 15.5.14: a body of 2 to the 31st", 413, sized("2147483648", "")},
    {"RFC 9110 15.5.14: a body of 2 to the 32nd and 5", 413, sized("4294967301", "hello")},
    {"RFC 9110 15.5.14: a body of 2 to the 63rd", 413, sized("9223372036854775808", "")},
    {"RFC 9110 15.5.14: a body of 2 to the 64th less 1", 413, sized("18446744073709551615", "")},
}
for _, case in ipairs(refused) do
    local name, status, bytes = table.unpack(case)
    test(name .. " is refused", function() http.check_refused(server, status, bytes) end)
end

test("RFC 9110 15.5.14: 413 comes before the body has come", function()
    local sock <close> = server:connect()
    sock:send(sized(tostring(MIB + 1), ""))
    http.check_refusal(sock, 413)
end)

test("RFC 9112 9.6: a client that is still sending its body gets the 413, and no reset", function()
    local sock <close> = server:connect()
    sock:pump(sized(tostring(2 * MIB), ("x"):rep(2 * MIB)))
    http.check_refusal(sock, 413)
end)

test("RFC 9112 6.3: a body in two pieces, cut at every point", function()
    local bytes = sized("26", "abcdefghijklmnopqrstuvwxyz")
    local sock <close> = server:connect()
    for at = 1, #bytes - 1 do
        sock:send(bytes:sub(1, at))
        sock:send(bytes:sub(at + 1))
        http.check_echoed(sock:read_reply(), {body = "abcdefghijklmnopqrstuvwxyz"})
    end
end)

test("RFC 9112 6.3: a request is not answered before its body is complete", function()
    local sock <close> = server:connect()
    sock:send(sized("5", "hell"))
    check(not sock:ready(0.05), "answered")
    sock:send("o")
    http.check_echoed(sock:read_reply(), {body = "hello"})
end)

test("RFC 9112 8: a body that is cut short is not taken as complete", function()
    local sock <close> = server:connect()
    sock:send(sized("10", "hello"))
    sock:shutdown()
    local said = sock:recv_all()
    check(said == "" or said:find("^HTTP/1%.1 400 "), said)
end)
