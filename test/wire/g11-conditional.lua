-- SPDX-License-Identifier: MIT
-- Conditional requests: RFC 9110 section 13, in the order that its section 13.2.2 gives the conditions.

local http = require "http"
local site = require "site"
local server <close> = site.start("--cache-control", "max-age=60")

local etag = server:get("/hello.txt").headers.etag
local other = "\"other\""

test("RFC 9110 8.8.3: the entity tag is a strong one, in quotation marks", function()
    check(etag:find("^\"[!#-~]+\"$"), etag)
end)

test("RFC 9110 8.8.3: the entity tag stays the same while the file is unchanged", function()
    equal(server:get("/hello.txt").headers.etag, etag)
end)

test("RFC 9110 8.8.3: files of different lengths have different entity tags", function()
    check(server:get("/page.html").headers.etag ~= etag, etag)
end)

test("RFC 9110 8.8.2: Last-Modified is the file's modification time", function()
    equal(server:get("/hello.txt").headers["last-modified"], site.MODIFIED)
end)

test("RFC 9110 8.8.2.1: Last-Modified is never in the future", function()
    server:write("future.txt", "later\n", "2099-01-01 00:00:00 UTC")
    local said = server:get("/future.txt").headers["last-modified"]
    check(said ~= "Thu, 01 Jan 2099 00:00:00 GMT", said)
end)

-- {section: name, status, field...}; TAG in a field is replaced by the file's entity tag.
local cases = {
    {"RFC 9110 13.1.2: If-None-Match with the tag", 304, "If-None-Match: TAG"},
    {"RFC 9110 13.1.2: If-None-Match with another tag", 200, "If-None-Match: " .. other},
    {"RFC 9110 13.1.2: If-None-Match with *", 304, "If-None-Match: *"},
    {"RFC 9110 8.8.3.2: If-None-Match with the weak tag", 304, "If-None-Match: W/TAG"},
    {"RFC 9110 8.8.3: If-None-Match with a lower-case w", 200, "If-None-Match: w/TAG"},
    {"RFC 9110 13.1.2: If-None-Match with the tag first in a list", 304,
     "If-None-Match: TAG, " .. other},
    {"RFC 9110 13.1.2: If-None-Match with the tag last in a list", 304,
     "If-None-Match: " .. other .. ", \"a\",TAG"},
    {"RFC 9110 13.1.2: If-None-Match with the weak tag in a list", 304,
     "If-None-Match: " .. other .. " , W/TAG"},
    {"RFC 9110 13.1.2: If-None-Match with a list without the tag", 200,
     "If-None-Match: " .. other .. ", W/\"a\", \"\""},
    {"RFC 9110 5.6.1: If-None-Match with empty elements", 304, "If-None-Match: , ,TAG,"},
    {"RFC 9110 5.3: If-None-Match in two lines, the tag in the second", 304,
     "If-None-Match: " .. other, "If-None-Match: TAG"},
    {"RFC 9110 5.3: If-None-Match in two lines, the tag in the first", 304,
     "If-None-Match: TAG", "If-None-Match: " .. other},
    {"RFC 9110 8.8.3: a comma in a tag is no end of it", 304, "If-None-Match: \"a,b\", TAG"},
    {"RFC 9110 8.8.3: a tag that has the tag in it", 200, "If-None-Match: \"xTAGx\""},
    {"RFC 9110 8.8.3: If-None-Match without quotation marks", 200, "If-None-Match: BARE"},
    {"RFC 9110 13.1.2: If-None-Match that is empty", 200, "If-None-Match:"},

    {"RFC 9110 13.1.3: If-Modified-Since of the file's time", 304,
     "If-Modified-Since: " .. site.MODIFIED},
    {"RFC 9110 13.1.3: If-Modified-Since of a later time", 304,
     "If-Modified-Since: " .. site.AFTER},
    {"RFC 9110 13.1.3: If-Modified-Since of an earlier time", 200,
     "If-Modified-Since: " .. site.BEFORE},
    {"RFC 9110 5.6.7: If-Modified-Since in the format of RFC 850", 304,
     "If-Modified-Since: " .. site.MODIFIED_850},
    {"RFC 9110 5.6.7: If-Modified-Since in the format of asctime", 304,
     "If-Modified-Since: " .. site.MODIFIED_ASCTIME},
    {"RFC 9110 13.1.3: If-Modified-Since that is no date", 200, "If-Modified-Since: yesterday"},
    {"RFC 9110 13.1.3: If-Modified-Since that is empty", 200, "If-Modified-Since:"},
    {"RFC 9110 13.1.3: If-Modified-Since that is a number", 200, "If-Modified-Since: 1577934245"},
    {"RFC 9110 13.1.3: If-Modified-Since of a 32nd of January", 200,
     "If-Modified-Since: Sat, 32 Jan 2026 03:04:05 GMT"},
    {"RFC 9110 5.6.7: If-Modified-Since of another zone", 200,
     "If-Modified-Since: Thu, 02 Jan 2026 03:04:05 CET"},
    {"RFC 9110 5.6.7: If-Modified-Since in lower case", 200,
     "If-Modified-Since: fri, 02 jan 2026 03:04:05 gmt"},
    {"RFC 9110 13.1.3: If-Modified-Since with text after it", 200,
     "If-Modified-Since: " .. site.AFTER .. " x"},

    {"RFC 9110 13.1.1: If-Match with the tag", 200, "If-Match: TAG"},
    {"RFC 9110 13.1.1: If-Match with another tag", 412, "If-Match: " .. other},
    {"RFC 9110 13.1.1: If-Match with *", 200, "If-Match: *"},
    {"RFC 9110 8.8.3.2: If-Match with the weak tag", 412, "If-Match: W/TAG"},
    {"RFC 9110 13.1.1: If-Match with the tag in a list", 200, "If-Match: " .. other .. ", TAG"},
    {"RFC 9110 13.1.1: If-Match with a list without the tag", 412,
     "If-Match: " .. other .. ", \"a\""},
    {"RFC 9110 13.1.1: If-Match with the weak tag in a list", 412,
     "If-Match: " .. other .. ", W/TAG"},
    {"RFC 9110 5.3: If-Match in two lines", 200, "If-Match: " .. other, "If-Match: TAG"},

    {"RFC 9110 13.1.4: If-Unmodified-Since of the file's time", 200,
     "If-Unmodified-Since: " .. site.MODIFIED},
    {"RFC 9110 13.1.4: If-Unmodified-Since of a later time", 200,
     "If-Unmodified-Since: " .. site.AFTER},
    {"RFC 9110 13.1.4: If-Unmodified-Since of an earlier time", 412,
     "If-Unmodified-Since: " .. site.BEFORE},
    {"RFC 9110 13.1.4: If-Unmodified-Since that is no date", 200, "If-Unmodified-Since: yesterday"},
    {"RFC 9110 5.6.7: If-Unmodified-Since in the format of RFC 850", 412,
     "If-Unmodified-Since: Thursday, 02-Jan-20 02:04:05 GMT"},
    {"RFC 9110 5.6.7: If-Unmodified-Since in the format of asctime", 412,
     "If-Unmodified-Since: Thu Jan  2 02:04:05 2020"},

    {"RFC 9110 13.2.2: If-Match is met, so If-Unmodified-Since is not asked", 200,
     "If-Unmodified-Since: " .. site.BEFORE, "If-Match: TAG"},
    {"RFC 9110 13.2.2: If-Match is not met, so If-None-Match is not asked", 412,
     "If-None-Match: TAG", "If-Match: " .. other},
    {"RFC 9110 13.2.2: If-Match and If-None-Match are met", 304,
     "If-Match: TAG", "If-None-Match: TAG"},
    {"RFC 9110 13.2.2: If-Match is met, and If-None-Match is not the tag", 200,
     "If-Match: TAG", "If-None-Match: " .. other},
    {"RFC 9110 13.2.2: If-Unmodified-Since before If-None-Match", 412,
     "If-None-Match: TAG", "If-Unmodified-Since: " .. site.BEFORE},
    {"RFC 9110 13.2.2: If-Unmodified-Since before If-Modified-Since", 412,
     "If-Modified-Since: " .. site.MODIFIED, "If-Unmodified-Since: " .. site.BEFORE},
    {"RFC 9110 13.2.2: If-Unmodified-Since is met, If-Modified-Since is asked", 304,
     "If-Modified-Since: " .. site.MODIFIED, "If-Unmodified-Since: " .. site.MODIFIED},
    {"RFC 9110 13.2.2: If-None-Match is not the tag, so If-Modified-Since is not asked", 200,
     "If-Modified-Since: " .. site.MODIFIED, "If-None-Match: " .. other},
    {"RFC 9110 13.2.2: If-None-Match is the tag, so If-Modified-Since is not asked", 304,
     "If-Modified-Since: " .. site.BEFORE, "If-None-Match: TAG"},
    {"RFC 9110 13.2.2: If-None-Match is the tag, so Range is not asked", 304,
     "If-None-Match: TAG", "Range: bytes=0-1"},
    {"RFC 9110 13.2.2: If-Modified-Since says not modified, so Range is not asked", 304,
     "If-Modified-Since: " .. site.MODIFIED, "Range: bytes=0-1"},
    {"RFC 9110 13.2.2: If-Match is not met, so Range is not asked", 412,
     "If-Match: " .. other, "Range: bytes=0-1"},
    {"RFC 9110 13.2.2: If-Match is met, so Range is asked", 206,
     "If-Match: TAG", "Range: bytes=0-1"},
    {"RFC 9110 13.2.2: If-Match is not met, so a bad Range is not asked", 412,
     "If-Match: " .. other, "Range: bytes=5000-"},
}

local function fields_of(case)
    local fields = {}
    for i = 3, #case do
        fields[i - 2] = case[i]:gsub("\"xTAGx\"", "\"x" .. etag:sub(2, -2) .. "x\"")
                               :gsub("TAG", etag):gsub("BARE", etag:sub(2, -2))
    end
    return table.unpack(fields)
end

for _, case in ipairs(cases) do
    local name, status = table.unpack(case)
    test(("%s: %d"):format(name, status), function()
        local reply = server:get_and_go_on("/hello.txt", fields_of(case))
        equal(reply.status, status)
        if status == 200 then
            equal(reply.body, site.HELLO)
        elseif status == 304 then
            equal(reply.headers["content-range"], nil)
        end
    end)
    test(("%s: %d for HEAD, too"):format(name:gsub("RFC 9110 [%d.]+", "RFC 9110 9.3.2", 1), status),
         function()
        local reply = http.ask(server, http.request("HEAD /hello.txt", fields_of(case)))
        -- RFC 9110 14.2: Range is defined for GET only.
        equal(reply.status, status == 206 and 200 or status)
    end)
end

test("RFC 9110 15.4.5: a 304 has the fields that the 200 would have", function()
    local full = server:get("/hello.txt")
    local reply = server:get_and_go_on("/hello.txt", "If-None-Match: " .. etag)
    equal(reply.status, 304)
    for _, name in ipairs{"etag", "cache-control", "vary", "content-location", "expires"} do
        equal(reply.headers[name], full.headers[name], name)
    end
    check(reply.headers.date, "no Date")
end)

test("RFC 9110 8.6: a 304 has no Content-Length, or that of the 200", function()
    local reply = server:get("/hello.txt", "If-None-Match: " .. etag)
    local length = reply.headers["content-length"]
    check(length == nil or length == tostring(#site.HELLO), "Content-Length: " .. tostring(length))
end)

test("RFC 9110 15.4.5: a 304 for a file with codings has the Vary of the 200", function()
    local full = server:get("/packed.js", "Accept-Encoding: gzip")
    local reply = server:get("/packed.js", "Accept-Encoding: gzip",
                             "If-None-Match: " .. full.headers.etag)
    equal(reply.status, 304)
    equal(reply.headers.vary, full.headers.vary)
    equal(reply.headers.etag, full.headers.etag)
end)

test("RFC 9110 8.8.3: each coding of a file has its own entity tag", function()
    local plain = server:get("/packed.js").headers.etag
    local tags = {[plain] = true}
    for _, coding in ipairs{"gzip", "br", "zstd"} do
        local reply = server:get("/packed.js", "Accept-Encoding: " .. coding)
        equal(reply.headers["content-encoding"], coding)
        check(not tags[reply.headers.etag], coding .. " has the tag of another")
        tags[reply.headers.etag] = true
    end
    equal(server:get("/packed.js", "Accept-Encoding: gzip", "If-None-Match: " .. plain).status, 200)
end)

test("RFC 9110 13.2.1: a missing file is 404, whatever the conditions", function()
    for _, field in ipairs{"If-None-Match: *", "If-Match: *", "If-Match: \"x\"",
                           "If-Modified-Since: " .. site.AFTER,
                           "If-Unmodified-Since: " .. site.BEFORE} do
        equal(server:get_and_go_on("/missing", field).status, 404, field)
    end
end)

test("RFC 9110 13.2.1: a directory is redirected, whatever the conditions", function()
    equal(server:get_and_go_on("/sub", "If-None-Match: *").status, 301)
end)

test("RFC 9110 13.2.1: a method that is not allowed is 405, whatever the conditions", function()
    local reply = http.ask(server, http.request("POST /hello.txt", "If-None-Match: " .. etag))
    equal(reply.status, 405)
end)

test("RFC 9110 13.1.2: an index file has an entity tag, too", function()
    local tag = server:get("/").headers.etag
    equal(server:get("/", "If-None-Match: " .. tag).status, 304)
    equal(server:get("/sub/", "If-None-Match: " .. tag).status, 200)
end)

test("RFC 9110 8.8.1: a file that is replaced gets another entity tag and another time", function()
    server:write("changing.txt", "before\n")
    local before = server:get("/changing.txt").headers
    server:replace("changing.txt", "after\n", "2020-01-02 04:04:05 UTC")
    require "httpd".wait_until(function()
        return server:get("/changing.txt").body == "after\n"
    end, "the new content")
    local after = server:get("/changing.txt").headers
    check(after.etag ~= before.etag, after.etag)
    equal(after["last-modified"], site.AFTER)
    equal(server:get("/changing.txt", "If-None-Match: " .. before.etag).status, 200)
    equal(server:get("/changing.txt", "If-Match: " .. before.etag).status, 412)
end)
