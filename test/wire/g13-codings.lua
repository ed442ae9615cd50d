-- SPDX-License-Identifier: MIT
-- Content codings that lie beside a file, such as style.css.gz: RFC 9110 sections 8.4 and 12.5.

local http = require "http"
local site = require "site"
local server <close> = site.start()

local PLAIN = server:get("/packed.js").body
local BODIES = {br = "as br", zstd = "as zstd", gzip = "as gzip"}

-- The coding of a reply, or "identity"; the body must be the file in that coding.
local function coding_of(reply)
    equal(reply.status, 200)
    local coding = reply.headers["content-encoding"]
    equal(reply.body, coding and BODIES[coding] or PLAIN)
    equal(reply.headers.vary, "Accept-Encoding")
    equal(reply.headers["content-type"]:match("^[^;]*"), "text/javascript")
    return coding or "identity"
end

-- {section, the value of Accept-Encoding (nil: no field), the codings that may be sent}
local cases = {
    {"RFC 9110 12.5.3", nil, "identity"},
    {"RFC 9110 12.5.3", "", "identity"},
    {"RFC 9110 12.5.3", "identity", "identity"},
    {"RFC 9110 12.5.3", "gzip", "gzip"},
    {"RFC 9110 12.5.3", "br", "br"},
    {"RFC 9110 12.5.3", "zstd", "zstd"},
    {"RFC 9110 12.5.3", "gzip, br", "gzip br"},
    {"RFC 9110 12.5.3", "gzip, deflate, br, zstd", "gzip br zstd"},
    {"RFC 9110 12.5.3", "*", "gzip br zstd identity"},
    {"RFC 9110 12.5.3", "deflate", "identity"},
    {"RFC 9110 12.5.3", "x-unknown", "identity"},
    {"RFC 9110 12.5.3", "compress, deflate, x-unknown", "identity"},
    {"RFC 9110 8.4.1", "GZIP", "gzip"},
    {"RFC 9110 8.4.1", "Br", "br"},
    {"RFC 9110 8.4.1", "gzipx", "identity"},
    {"RFC 9110 8.4.1", "gzi", "identity"},
    {"RFC 9110 8.4.1.3", "x-gzip", "gzip identity"},
    {"RFC 9110 12.4.2", "gzip;q=1", "gzip"},
    {"RFC 9110 12.4.2", "gzip;q=0.001", "gzip identity"},
    {"RFC 9110 12.4.2", "gzip;q=0", "identity"},
    {"RFC 9110 12.4.2", "gzip;q=0.0", "identity"},
    {"RFC 9110 12.4.2", "gzip;q=0.000", "identity"},
    {"RFC 9110 12.4.2", "gzip;Q=0", "identity"},
    {"RFC 9110 12.4.2", "gzip ; q=0", "identity"},
    {"RFC 9110 12.4.2", "gzip;\tq=0", "identity"},
    {"RFC 9110 12.4.2", "gzip;q=0, br", "br"},
    {"RFC 9110 12.4.2", "gzip;q=1.0, br;q=0", "gzip"},
    {"RFC 9110 12.4.2", "gzip;q=0.9, br;q=0.1", "gzip"},
    {"RFC 9110 12.4.2", "gzip;q=0.1, br;q=0.9", "br"},
    {"RFC 9110 12.4.2", "br;q=0.5, zstd;q=0.501, gzip;q=0.499", "zstd"},
    {"RFC 9110 12.4.2", "gzip;q=0.5, identity;q=1", "identity"},
    {"RFC 9110 12.5.3", "identity;q=0.5, gzip;q=0.9", "gzip"},
    {"RFC 9110 12.5.3", "identity;q=0, gzip", "gzip"},
    {"RFC 9110 12.5.3", "*;q=0, gzip", "gzip"},
    {"RFC 9110 12.5.3", "*;q=0, br;q=0.1", "br"},
    {"RFC 9110 12.5.3", "gzip;q=0, br;q=0, *", "zstd identity"},
    {"RFC 9110 12.5.3", "gzip;q=0, br;q=0, zstd;q=0", "identity"},
    {"RFC 9110 12.5.3", "br, *;q=0", "br"},
    {"RFC 9110 5.6.1", ",, gzip ,", "gzip"},
}
for _, case in ipairs(cases) do
    local section, accepted, good = table.unpack(case, 1, 3)
    test(("%s: %s"):format(section, accepted and ("Accept-Encoding: " .. accepted)
                           or "no Accept-Encoding"), function()
        local field = accepted and "Accept-Encoding: " .. accepted
        local reply = server:get_and_go_on("/packed.js", field)
        local coding = coding_of(reply)
        check((" " .. good .. " "):find(" " .. coding .. " ", 1, true), coding .. ", not " .. good)
    end)
end

test("RFC 9110 5.3: Accept-Encoding in two field lines", function()
    local reply = server:get("/packed.js", "Accept-Encoding: deflate", "Accept-Encoding: gzip")
    equal(coding_of(reply), "gzip")
end)

test("RFC 9110 12.5.3: identity is refused, and there is no other coding: 406, or identity", function()
    for _, accepted in ipairs{"identity;q=0", "*;q=0", "identity;q=0, deflate"} do
        local reply = server:get_and_go_on("/hello.txt", "Accept-Encoding: " .. accepted)
        http.check_one_of({200, 406}, reply.status)
    end
end)

test("RFC 9110 12.5.5: a file with codings is sent with Vary, also in identity", function()
    equal(server:get("/packed.js").headers.vary, "Accept-Encoding")
    equal(server:get("/zipped.css", "Accept-Encoding: br").headers.vary, "Accept-Encoding")
end)

test("RFC 9110 12.5.5: a file without codings is sent without Vary", function()
    equal(server:get("/hello.txt", "Accept-Encoding: gzip").headers.vary, nil)
end)

test("RFC 9110 12.5.3: an accepted coding without its file is not sent", function()
    local reply = server:get("/zipped.css", "Accept-Encoding: br, zstd")
    equal(reply.headers["content-encoding"], nil)
    equal(reply.body, ("p {}\n"):rep(50))
end)

test("RFC 9110 12.5.3: of several accepted codings the server sends the one that exists", function()
    local reply = server:get("/zipped.css", "Accept-Encoding: br, gzip;q=0.1")
    equal(reply.headers["content-encoding"], "gzip")
    equal(reply.headers["content-type"]:match("^[^;]*"), "text/css")
end)

test("RFC 9110 8.4: a coding older than its file is not sent", function()
    local reply = server:get("/stale.js", "Accept-Encoding: gzip")
    equal(reply.headers["content-encoding"], nil)
    equal(reply.body, ("new();\n"):rep(50))
end)

test("RFC 9110 8.4: a coding whose plain file is missing is not served", function()
    server:write("lonely.js.gz", "as gzip")
    equal(server:get("/lonely.js", "Accept-Encoding: gzip").status, 404)
end)

test("RFC 9110 8.4: a directory with the name of a coding is ignored", function()
    server:write("almost.js", "plain();\n")
    server:write("almost.js.gz/file", "x")
    local reply = server:get_and_go_on("/almost.js", "Accept-Encoding: gzip")
    equal(reply.headers["content-encoding"], nil)
    equal(reply.body, "plain();\n")
end)

test("RFC 9110 8.4: an index file can have codings, too", function()
    server:write("coded/index.html", ("<p>plain\n"):rep(20))
    server:write("coded/index.html.gz", "as gzip")
    local reply = server:get_and_go_on("/coded/", "Accept-Encoding: gzip")
    equal(reply.headers["content-encoding"], "gzip")
    equal(reply.headers["content-type"]:match("^[^;]*"), "text/html")
    equal(reply.body, "as gzip")
end)

test("RFC 9110 8.8.2: a coding has its own Last-Modified", function()
    check(server:get("/packed.js", "Accept-Encoding: gzip").headers["last-modified"], "no time")
end)

test("RFC 9110 14.2: a range counts bytes of the coding that the reply names", function()
    local gzip = "Accept-Encoding: gzip"
    local reply = server:get_and_go_on("/packed.js", gzip, "Range: bytes=0-4")
    local coding = reply.headers["content-encoding"]
    local whole = coding and BODIES[coding] or PLAIN
    local full = server:get("/packed.js", coding and gzip)
    equal(reply.status, 206)
    equal(reply.body, whole:sub(1, 5))
    equal(reply.headers["content-range"], ("bytes 0-4/%d"):format(#whole))
    equal(reply.headers.etag, full.headers.etag)
    equal(reply.headers.vary, "Accept-Encoding")
end)

test("RFC 9110 13.1.5: If-Range with a coding's tag never gets a part of the plain file", function()
    local gzip = "Accept-Encoding: gzip"
    local tag = server:get("/packed.js", gzip).headers.etag
    local reply = server:get("/packed.js", gzip, "Range: bytes=0-4", "If-Range: " .. tag)
    if reply.status == 206 then
        equal(reply.headers["content-encoding"], "gzip", "a part of another representation")
    else
        equal(reply.status, 200)
    end
end)
