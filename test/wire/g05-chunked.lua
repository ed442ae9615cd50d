-- SPDX-License-Identifier: MIT
-- Bodies in chunks: RFC 9112 sections 6.1 and 7.1.

local http = require "http"
local request, chunked = http.request, http.chunked
local server <close> = http.echo()

local EVIL = request("GET /evil")
local MIB = 1024 * 1024

local function coding(...)
    return request("POST /", ...) .. "5\r\nhello\r\n0\r\n\r\n"
end

http.test_answered(server, {
    {"RFC 9112 7.1: one chunk", chunked("5\r\nhello\r\n0\r\n\r\n"), {body = "hello"}},
    {"RFC 9112 7.1: no chunk but the last", chunked("0\r\n\r\n"), {body = ""}},
    {"RFC 9112 7.1: three chunks", chunked("2\r\nhe\r\n2\r\nll\r\n1\r\no\r\n0\r\n\r\n"),
     {body = "hello"}},
    {"RFC 9112 7.1: a size in lower case", chunked("a\r\n0123456789\r\n0\r\n\r\n"),
     {body = "0123456789"}},
    {"RFC 9112 7.1: a size in upper case", chunked("A\r\n0123456789\r\n0\r\n\r\n"),
     {body = "0123456789"}},
    {"RFC 9112 7.1: a size of two digits", chunked("1a\r\n" .. ("x"):rep(26) .. "\r\n0\r\n\r\n"),
     {body = ("x"):rep(26)}},
    {"RFC 9112 7.1: a size of zeros and a digit", chunked("0005\r\nhello\r\n0\r\n\r\n"),
     {body = "hello"}},
    {"RFC 9112 7.1: more zeros than a number has digits",
     chunked(("0"):rep(40) .. "5\r\nhello\r\n0\r\n\r\n"), {body = "hello"}},
    {"RFC 9112 7.1: a last chunk of many zeros", chunked("5\r\nhello\r\n0000\r\n\r\n"),
     {body = "hello"}},
    {"RFC 9112 7.1: chunks of one byte", chunked(("1\r\nx\r\n"):rep(1000) .. "0\r\n\r\n"),
     {body = ("x"):rep(1000)}},
    {"RFC 9112 7.1: a chunk of 64 KiB",
     chunked("10000\r\n" .. ("x"):rep(65536) .. "\r\n0\r\n\r\n"), {body = ("x"):rep(65536)}},
    {"RFC 9112 7.1: a chunk of 1 MiB", chunked("100000\r\n" .. ("x"):rep(MIB) .. "\r\n0\r\n\r\n"),
     {body = ("x"):rep(MIB)}},
    {"RFC 9112 7.1: a chunk that looks like a chunk", chunked("5\r\n0\r\n\r\n\r\n0\r\n\r\n"),
     {body = "0\r\n\r\n"}},
    {"RFC 9112 7.1: a chunk that looks like a request",
     chunked(("%x\r\n%s\r\n0\r\n\r\n"):format(#EVIL, EVIL)), {body = EVIL}},
    {"RFC 9112 7.1: a chunk of line ends", chunked("4\r\n\r\n\r\n\r\n0\r\n\r\n"),
     {body = "\r\n\r\n"}},
    {"RFC 9112 7.1.1: an extension without a value", chunked("5;a\r\nhello\r\n0\r\n\r\n"),
     {body = "hello"}},
    {"RFC 9112 7.1.1: an extension with a value", chunked("5;a=b\r\nhello\r\n0\r\n\r\n"),
     {body = "hello"}},
    {"RFC 9112 7.1.1: several extensions", chunked("5;a=b;c;d=e\r\nhello\r\n0\r\n\r\n"),
     {body = "hello"}},
    {"RFC 9112 7.1.1: a quoted extension", chunked("5;a=\"b c;=,\"\r\nhello\r\n0\r\n\r\n"),
     {body = "hello"}},
    {"RFC 9112 7.1.1: a quoted extension with escapes",
     chunked("5;a=\"b\\\"c\\\\\"\r\nhello\r\n0\r\n\r\n"), {body = "hello"}},
    {"RFC 9112 7.1.1: an empty quoted extension", chunked("5;a=\"\"\r\nhello\r\n0\r\n\r\n"),
     {body = "hello"}},
    {"RFC 9112 7.1.1: blanks around the marks of an extension",
     chunked("5 ;\ta = b\r\nhello\r\n0\r\n\r\n"), {body = "hello"}},
    {"RFC 9112 7.1.1: an extension of the last chunk", chunked("5\r\nhello\r\n0;a=b\r\n\r\n"),
     {body = "hello"}},
    {"RFC 9112 7.1.1: an extension that looks like a size", chunked("5;5\r\nhello\r\n0\r\n\r\n"),
     {body = "hello"}},
    {"RFC 9112 7.1.2: a trailer", chunked("5\r\nhello\r\n0\r\nX: y\r\n\r\n"), {body = "hello"}},
    {"RFC 9112 7.1.2: a trailer of several fields",
     chunked("5\r\nhello\r\n0\r\nX: y\r\nZ:\r\nx: \t\xff\r\n\r\n", "Trailer: X, Z"),
     {body = "hello"}},
    {"RFC 9110 6.5.1: Content-Length in a trailer means nothing",
     chunked("5\r\nhello\r\n0\r\nContent-Length: 50\r\n\r\n"), {body = "hello"}},
    {"RFC 9110 6.5.1: Transfer-Encoding in a trailer means nothing",
     chunked("5\r\nhello\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n"), {body = "hello"}},
    {"RFC 9110 6.5.1: Connection in a trailer means nothing",
     chunked("5\r\nhello\r\n0\r\nConnection: close\r\n\r\n"), {body = "hello"}},
    {"RFC 9110 6.5.1: a second Host in a trailer means nothing",
     chunked("5\r\nhello\r\n0\r\nHost: b\r\n\r\n"), {body = "hello"}},
    {"RFC 9110 6.5.1: Expect in a trailer means nothing",
     chunked("5\r\nhello\r\n0\r\nExpect: 100-continue\r\n\r\n"), {body = "hello"}},
    {"RFC 9112 7: codings in any case", coding("Transfer-Encoding: ChUnKeD"), {body = "hello"}},
    {"RFC 9112 7: blanks around a coding", coding("Transfer-Encoding: \t chunked \t"),
     {body = "hello"}},
    {"RFC 9110 5.1: TRANSFER-ENCODING in capitals", coding("TRANSFER-ENCODING: chunked"),
     {body = "hello"}},
    {"RFC 9112 6.1: a chunked GET", request("GET /", "Transfer-Encoding: chunked") ..
     "5\r\nhello\r\n0\r\n\r\n", {body = "hello"}},
    {"RFC 9112 6.1: a chunked PUT in HTTP/1.2", request("PUT / HTTP/1.2",
     "Transfer-Encoding: chunked") .. "5\r\nhello\r\n0\r\n\r\n", {method = "PUT", body = "hello"}},
    {"RFC 9112 6.1: a chunked HEAD", request("HEAD /", "Transfer-Encoding: chunked") ..
     "5\r\nhello\r\n0\r\n\r\n", {method = "HEAD"}},
    {"RFC 9110 10.1.4: TE says nothing of the request's own body",
     request("POST /", "TE: chunked, trailers", "Connection: TE")},
})

local bad_chunks = {
    {"RFC 9112 7.1", "no size", "\r\nhello\r\n0\r\n\r\n"},
    {"RFC 9112 7.1", "a size of letters", "five\r\nhello\r\n0\r\n\r\n"},
    {"RFC 9112 7.1", "a size with 0x in front", "0x5\r\nhello\r\n0\r\n\r\n"},
    {"RFC 9112 7.1", "a size with a plus sign", "+5\r\nhello\r\n0\r\n\r\n"},
    {"RFC 9112 7.1", "a size with a minus sign", "-5\r\nhello\r\n0\r\n\r\n"},
    {"RFC 9112 7.1", "a last chunk with a minus sign", "-0\r\n\r\n"},
    {"RFC 9112 7.1", "a size with an underscore", "0_5\r\nhello\r\n0\r\n\r\n"},
    {"RFC 9112 7.1", "a size with a blank before it", " 5\r\nhello\r\n0\r\n\r\n"},
    {"RFC 9112 7.1", "a size with a tab before it", "\t5\r\nhello\r\n0\r\n\r\n"},
    {"RFC 9112 7.1", "a size with a blank after it", "5 \r\nhello\r\n0\r\n\r\n"},
    {"RFC 9112 7.1", "a size with a tab after it", "5\t\r\nhello\r\n0\r\n\r\n"},
    {"RFC 9112 7.1", "a size with a blank in it", "0 5\r\nhello\r\n0\r\n\r\n"},
    {"RFC 9112 7.1", "a size with a letter after it", "5g\r\nhello\r\n0\r\n\r\n"},
    {"RFC 9112 7.1", "a size with an h after it", "5h\r\nhello\r\n0\r\n\r\n"},
    {"RFC 9112 7.1", "a size with a fraction", "5.0\r\nhello\r\n0\r\n\r\n"},
    {"RFC 9112 7.1", "a size with a comma", "5,\r\nhello\r\n0\r\n\r\n"},
    {"RFC 9112 7.1", "a size in quotation marks", "\"5\"\r\nhello\r\n0\r\n\r\n"},
    {"RFC 9112 7.1", "a size of digits of another script", "\xd9\xa5\r\nhello\r\n0\r\n\r\n"},
    {"RFC 9112 7.1", "a size with a NUL after it", "5\0\r\nhello\r\n0\r\n\r\n"},
    {"RFC 9112 7.1", "a size with a vertical tab after it", "5\v\r\nhello\r\n0\r\n\r\n"},
    {"RFC 9112 7.1", "an empty line before the size", "\r\n5\r\nhello\r\n0\r\n\r\n"},
    {"RFC 9112 7.1", "a bare LF after a size", "5\nhello\r\n0\r\n\r\n"},
    {"RFC 9112 7.1", "a bare CR after a size", "5\rhello\r\n0\r\n\r\n"},
    {"RFC 9112 7.1", "CR CR LF after a size", "5\r\r\nhello\r\n0\r\n\r\n"},
    {"RFC 9112 7.1", "a bare LF after the data", "5\r\nhello\n0\r\n\r\n"},
    {"RFC 9112 7.1", "a bare CR after the data", "5\r\nhello\r0\r\n\r\n"},
    {"RFC 9112 7.1", "nothing after the data", "5\r\nhello0\r\n\r\n"},
    {"RFC 9112 7.1", "two line ends after the data", "5\r\nhello\r\n\r\n0\r\n\r\n"},
    {"RFC 9112 7.1", "more data than the size says", "4\r\nhello\r\n0\r\n\r\n"},
    {"RFC 9112 7.1", "less data than the size says", "6\r\nhello\r\n0\r\n\r\n"},
    {"RFC 9112 7.1", "a bare LF after the last chunk", "5\r\nhello\r\n0\n\r\n"},
    {"RFC 9112 7.1", "a bare LF at the end", "5\r\nhello\r\n0\r\n\n"},
    {"RFC 9112 7.1", "bare LF everywhere", "5\nhello\n0\n\n"},
    {"RFC 9112 7.1", "text for a chunk", "hello, world\r\n"},
    {"RFC 9112 7.1.1", "a semicolon and no extension", "5;\r\nhello\r\n0\r\n\r\n"},
    {"RFC 9112 7.1.1", "an extension without a name", "5;=a\r\nhello\r\n0\r\n\r\n"},
    {"RFC 9112 7.1.1", "an extension with = and no value", "5;a=\r\nhello\r\n0\r\n\r\n"},
    {"RFC 9112 7.1.1", "an extension with a bare LF", "5;a\nhello\r\n0\r\n\r\n"},
    {"RFC 9112 7.1.1", "an extension with a bare CR", "5;a\rb\r\nhello\r\n0\r\n\r\n"},
    {"RFC 9112 7.1.1", "an extension with CR CR LF", "5;a\r\r\nhello\r\n0\r\n\r\n"},
    {"RFC 9112 7.1.1", "an extension with a NUL", "5;a\0\r\nhello\r\n0\r\n\r\n"},
    {"RFC 9112 7.1.1", "an extension with a control byte", "5;a=\1\r\nhello\r\n0\r\n\r\n"},
    {"RFC 9112 7.1.1", "an extension that is no token", "5;a=b@c\r\nhello\r\n0\r\n\r\n"},
    {"RFC 9112 7.1.1", "an open quotation mark", "5;a=\"b\r\nhello\r\n0\r\n\r\n"},
    {"RFC 9112 7.1.1", "a line end in a quoted extension", "5;a=\"\r\n\"\r\nhello\r\n0\r\n\r\n"},
    {"RFC 9112 7.1.1", "an LF in a quoted extension", "5;a=\"\n\"\r\nhello\r\n0\r\n\r\n"},
    {"RFC 9112 7.1.1", "a letter after a quoted extension", "5;a=\"b\"c\r\nhello\r\n0\r\n\r\n"},
    {"RFC 9112 7.1.2", "a trailer without a colon", "0\r\nX\r\n\r\n"},
    {"RFC 9112 7.1.2", "a trailer without a name", "0\r\n: y\r\n\r\n"},
    {"RFC 9112 7.1.2", "a trailer with a blank before the colon", "0\r\nX : y\r\n\r\n"},
    {"RFC 9112 7.1.2", "a folded trailer", "0\r\nX: y\r\n z\r\n\r\n"},
    {"RFC 9112 7.1.2", "a trailer with a bare LF", "0\r\nX: y\n\r\n"},
    {"RFC 9112 7.1.2", "a trailer with a bare CR", "0\r\nX: y\rZ: a\r\n\r\n"},
    {"RFC 9112 7.1.2", "a trailer with a NUL", "0\r\nX: \0\r\n\r\n"},
    {"RFC 9112 7.1.2", "a request for a trailer", "0\r\nGET / HTTP/1.1\r\n\r\n"},
}
for _, case in ipairs(bad_chunks) do
    local section, name, body = table.unpack(case)
    test(("%s: %s is refused"):format(section, name), function()
        http.check_refused(server, 400, chunked(body))
    end)
end

local bad_codings = {
    {"RFC 9112 6.1: a coding that is not chunked", {400, 501}, "gzip"},
    {"RFC 9112 6.1: a coding that nobody knows", {400, 501}, "x-unknown"},
    {"RFC 9112 6.1: gzip before chunked", 501, "gzip, chunked"},
    {"RFC 9112 6.3: gzip after chunked", 400, "chunked, gzip"},
    {"RFC 9112 6.1: chunked twice", 400, "chunked, chunked"},
    {"RFC 9112 6.1: chunked thrice", 400, "chunked, chunked, chunked"},
    {"RFC 9112 7: identity, which is gone", {400, 501}, "identity"},
    {"RFC 9112 7: identity before chunked", {400, 501}, "identity, chunked"},
    {"RFC 9112 6.1: no coding", 400, ""},
    {"RFC 9112 6.1: a comma before chunked", {400, 501}, ", chunked"},
    {"RFC 9112 6.1: a comma after chunked", {400, 501}, "chunked,"},
    {"RFC 9112 7: chunked with a parameter", {400, 501}, "chunked;q=1"},
    {"RFC 9112 7: chunked in quotation marks", {400, 501}, "\"chunked\""},
    {"RFC 9112 7: chunked with a letter before it", {400, 501}, "xchunked"},
    {"RFC 9112 7: chunked with a letter after it", {400, 501}, "chunkedx"},
    {"RFC 9112 7: chunked without its last letter", {400, 501}, "chunke"},
    {"RFC 9112 7: chunked with a word after it", {400, 501}, "chunked x"},
    {"RFC 9112 7: chunked with a no-break space before it", {400, 501}, "\xa0chunked"},
    {"RFC 9112 7: chunked with a no-break space after it", {400, 501}, "chunked\xa0"},
    {"RFC 9110 5.5: chunked with a vertical tab before it", 400, "\vchunked"},
    {"RFC 9110 5.5: chunked with a NUL after it", 400, "chunked\0"},
    {"RFC 9110 5.5: chunked with a CR before it", 400, "\rchunked"},
}
for _, case in ipairs(bad_codings) do
    local name, statuses, value = table.unpack(case)
    test(name .. " is refused", function()
        http.check_refused(server, statuses, coding("Transfer-Encoding: " .. value))
    end)
end

http.test_refused(server, {
    {"RFC 9112 6.1: chunked in two lines is refused", 400,
     coding("Transfer-Encoding: chunked", "Transfer-Encoding: chunked")},
    {"RFC 9112 6.1: chunked in one line, identity in the next, is refused", {400, 501},
     coding("Transfer-Encoding: chunked", "Transfer-Encoding: identity")},
    {"RFC 9112 6.1: gzip in one line, chunked in the next, is refused", 501,
     coding("Transfer-Encoding: gzip", "Transfer-Encoding: chunked")},
    {"RFC 9112 6.1: Transfer-Encoding in HTTP/1.0 is refused", 400,
     request("POST / HTTP/1.0", "Transfer-Encoding: chunked") .. "0\r\n\r\n"},
    {"RFC 9112 6.1: Transfer-Encoding in HTTP/1.0, to be kept alive, is refused", 400,
     request("POST / HTTP/1.0", "Connection: keep-alive", "Transfer-Encoding: chunked")
        .. "0\r\n\r\n"},
    {"RFC 9112 7.1: a size of 17 digits is refused", {400, 413},
     chunked("10000000000000005\r\nhello\r\n0\r\n\r\n")},
    {"RFC 9112 7.1: a size of 2 to the 64th less 1 is refused", 413,
     chunked("ffffffffffffffff\r\nhello\r\n0\r\n\r\n")},
    {"RFC 9112 7.1: a size of 2 to the 63rd is refused", 413,
     chunked("8000000000000000\r\nhello\r\n0\r\n\r\n")},
    {"RFC 9112 7.1: a size of 2 to the 32nd and 5 is refused", 413,
     chunked("100000005\r\nhello\r\n0\r\n\r\n")},
    {"RFC 9110 15.5.14: a chunk of 1 MiB and a byte is refused", 413,
     chunked("100001\r\n" .. ("x"):rep(100))},
    {"RFC 9110 15.5.14: chunks of 1 MiB and a byte in all are refused", 413,
     chunked("80000\r\n" .. ("x"):rep(MIB // 2) .. "\r\n80001\r\n" .. ("x"):rep(MIB // 2))},
    {"RFC 9112 7.1.1: an extension of 100,000 bytes is refused", {400, 413, 431},
     chunked("5;" .. ("a"):rep(100000) .. "\r\nhello\r\n0\r\n\r\n")},
    {"RFC 9112 7.1.1: 100,000 bytes of small extensions are refused", {400, 413, 431},
     chunked(("1;aaaaaaaaaaaaaaaaaa\r\nx\r\n"):rep(5000) .. "0\r\n\r\n")},
    {"RFC 9112 7.1.2: a trailer of 100,000 bytes is refused", 431,
     chunked("0\r\nX: " .. ("y"):rep(100000) .. "\r\n\r\n")},
    {"RFC 9112 7.1.2: a trailer of 1,000 fields is refused", 431,
     chunked("0\r\n" .. ("X: y\r\n"):rep(1000) .. "\r\n")},
})

test("RFC 9112 7.1: a chunked body in two pieces, cut at every point", function()
    local bytes = chunked("2;a=\"b\\\"\"\r\nhe\r\n03 ; c = d\r\nllo\r\n0\r\nX: y\r\n\r\n")
    local sock <close> = server:connect()
    for at = 1, #bytes - 1 do
        sock:send(bytes:sub(1, at))
        sock:send(bytes:sub(at + 1))
        http.check_echoed(sock:read_reply(), {body = "hello"})
    end
end)

test("RFC 9112 7.1: a chunked body byte by byte", function()
    local sock <close> = server:connect()
    sock:send_slowly(chunked("5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n"), 1)
    http.check_echoed(sock:read_reply(), {body = "hello"})
end)

test("RFC 9112 7.1: a request is not answered before its last chunk", function()
    local sock <close> = server:connect()
    sock:send(chunked("5\r\nhello\r\n0\r\n\r"))
    check(not sock:ready(0.05), "answered")
    sock:send("\n")
    http.check_echoed(sock:read_reply(), {body = "hello"})
end)

for _, length in ipairs{0, 1, 3, 6, 8, 10, 11, 13, 19} do
    test(("RFC 9112 8: a chunked body that ends after %d bytes is not taken as complete"):format(length),
         function()
        local sent = ("5\r\nhello\r\n0\r\nX: y\r\n"):sub(1, length)
        local sock <close> = server:connect()
        sock:send(chunked(sent))
        sock:shutdown()
        local said = sock:recv_all()
        check(said == "" or said:find("^HTTP/1%.1 400 "), said)
    end)
end
